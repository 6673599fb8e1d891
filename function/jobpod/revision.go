// SPDX-License-Identifier: Apache-2.0

package jobpod

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/definition"
)

// PodInputs are the fields of a spec that reach pods.
type PodInputs struct {
	// Managed are the paths of fields that do not reach pods.
	Managed []string
	// Claim is the path of a claim for a volume, or nil. That there is one reaches pods; its size, class and access mode do not.
	Claim []string
	// Usual values of fields mean the same as none, by their paths.
	Usual map[string]any
}

// Revision is the hash of what reaches pods. The spec has a Go type: fields that this version does not know, as during an upgrade, make no
// revision. Uniform makes another way to write the same no revision either.
func (p PodInputs) Revision(spec any) (string, error) {
	fields, err := compose.AsMap(spec)
	if err != nil {
		return "", err //nolint:wrapcheck // The caller says what it was for.
	}
	for _, path := range p.Managed {
		unstructured.RemoveNestedField(fields, strings.Split(path, ".")...)
	}
	if n := len(p.Claim); n > 0 {
		if in := compose.Map(fields, p.Claim[:n-1]...); in[p.Claim[n-1]] != nil {
			in[p.Claim[n-1]] = "own"
		}
	}
	raw, err := json.Marshal(definition.Significant(fields, p.Usual))
	if err != nil {
		return "", err //nolint:wrapcheck // The same.
	}
	return compose.Hash(raw), nil
}

// Uniform changes Secrets and amounts in place, so that two ways to write the same become one. Resources can be nil.
func Uniform(secrets []v1alpha1.MountedSecret, resources ...*v1alpha1.Resources) {
	slices.SortFunc(secrets, func(a, b v1alpha1.MountedSecret) int { return strings.Compare(a.Name, b.Name) })
	for _, r := range resources {
		if r == nil {
			continue
		}
		for _, q := range []*resource.Quantity{r.CPU, r.Memory, r.SharedMemory} {
			if q != nil {
				q.Add(resource.Quantity{}) // forgets how it was written
			}
		}
	}
}
