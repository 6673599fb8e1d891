// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A Mount is a folder of the container that a field of the spec takes.
type Mount struct {
	Field *field.Path
	Path  string
}

// Mounts must not hide each other, and none can be created inside another that is mounted read-only.
func Mounts(ms []Mount) field.ErrorList {
	var errs field.ErrorList
	for i, m := range ms {
		if path.Clean(m.Path) == "/" {
			errs = append(errs, field.Invalid(m.Field, m.Path, "must be an absolute path other than / and without ':'"))
			continue
		}
		for _, other := range ms[:i] {
			if how := Overlap(path.Clean(m.Path), path.Clean(other.Path)); how != "" {
				errs = append(errs, field.Invalid(m.Field, m.Path,
					fmt.Sprintf("%s %s, which is taken by %s: choose another folder", how, other.Path, other.Field)))
				break
			}
		}
	}
	return errs
}

// Overlap of two folders in words, or nothing.
func Overlap(a, b string) string {
	switch {
	case a == b:
		return "is the same as"
	case strings.HasPrefix(a, b+"/"):
		return "is inside"
	case strings.HasPrefix(b, a+"/"):
		return "contains"
	default:
		return ""
	}
}

// GPU must be an extended resource as Kubernetes defines it.
func GPU(at *field.Path, r *v1alpha1.Resources) field.ErrorList {
	if r.GPU == "" {
		return nil
	}
	var errs field.ErrorList
	if strings.Contains(r.GPU, "kubernetes.io/") || len(validation.IsQualifiedName("requests."+r.GPU)) > 0 {
		errs = append(errs, field.Invalid(at.Child("gpu"), r.GPU,
			"must be a resource that nodes advertise, of the form vendor/device, for instance nvidia.com/gpu"))
	}
	if i := slices.Index(r.GPUProducts, ""); i >= 0 {
		errs = append(errs, field.Invalid(at.Child("gpuProducts").Index(i), "", "must be the value of a node's label"))
	}
	return errs
}
