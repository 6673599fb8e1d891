// SPDX-License-Identifier: Apache-2.0

// Package validation checks the parts of a spec that describe pods in the same fields for several kinds, and that a schema cannot check.
package validation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	kjson "sigs.k8s.io/json"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/placement"
	"github.com/capstan-dev/capstan/function/podspec"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// Unknown fields of what has the form of core/v1. The schema keeps them, and they would have no effect.
func Unknown(at *field.Path, written map[string]any) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		name string
		into func() any
	}{
		{"initContainers", func() any { return &corev1.Container{} }},
		{"containers", func() any { return &corev1.Container{} }},
		{"volumes", func() any { return &corev1.Volume{} }},
	} {
		for i, item := range compose.List(written, list.name) {
			raw, err := json.Marshal(item)
			if err != nil {
				continue
			}
			strict, _ := kjson.UnmarshalStrict(raw, list.into()) // What cannot be decoded at all is reported with the schema.
			for _, err := range strict {
				errs = append(errs, field.Invalid(at.Child(list.name).Index(i), field.OmitValueType{},
					fmt.Sprintf("%v: remove or correct it: core/v1 has no such field", err)))
			}
		}
	}
	return errs
}

// Devices that pods can claim only in a cluster that serves such claims. Resources are at a field.
func Devices(at *field.Path, r *v1alpha1.Resources, served compose.Availability) field.ErrorList {
	if r.DeviceRequest == nil || served != compose.Unavailable {
		return nil
	}
	return field.ErrorList{field.Invalid(at.Child("deviceRequest", "deviceClassName"), r.DeviceRequest.DeviceClassName,
		"the cluster does not serve ResourceClaimTemplate of resource.k8s.io/v1: upgrade Kubernetes to 1.34 or later, or set "+
			at.Child("gpu").String()+" to a resource that nodes advertise")}
}

// Metadata of the pods, which are at a field. Some annotations lift a restriction.
func Metadata(at *field.Path, m *v1alpha1.PodMetadata) field.ErrorList {
	if len(m.Labels)+len(m.Annotations) == 0 {
		return nil // as for most, which the standard need not be evaluated for
	}
	errs := placement.CheckMetadata(at, m)
	for _, found := range Unrestricted(placement.Annotations(m), corev1.PodSpec{Containers: []corev1.Container{podspec.Restricted(corev1.Container{}, false)}}) {
		errs = append(errs, field.Invalid(at.Child("annotations"), field.OmitValueType{}, found))
	}
	return errs
}

// A Volumes has what volumes of a spec are checked with.
type Volumes struct {
	// Kinds that the platform allows.
	Kinds []inputv1alpha1.PodVolumeKind
	// Account that the spec names, or "".
	Account string
	// Reserved reports whether Capstan uses a name of a volume.
	Reserved func(name string) bool
}

// Volume of a spec: one kind, which the platform allows.
func (s Volumes) Volume(at *field.Path, v corev1.Volume) field.ErrorList {
	if s.Reserved(v.Name) {
		return field.ErrorList{field.Invalid(at.Child("name"), v.Name, "is a name that Capstan uses for volumes: choose another name")}
	}
	source, err := compose.AsMap(v.VolumeSource)
	if err != nil {
		return field.ErrorList{field.Invalid(at, v.Name, fmt.Sprintf("cannot be read: %v", err))}
	}
	kinds := slices.Sorted(maps.Keys(source))
	if len(kinds) != 1 {
		return field.ErrorList{field.Invalid(at, v.Name,
			fmt.Sprintf("has %d kinds (%s): set exactly one of %s", len(kinds), strings.Join(kinds, ", "), s.allowed()))}
	}
	if !slices.Contains(s.Kinds, inputv1alpha1.PodVolumeKind(kinds[0])) {
		remedy := "use one of them, or ask the platform team for a kind that restricted pods can have"
		if slices.Contains(inputv1alpha1.PodVolumeKinds(), inputv1alpha1.PodVolumeKind(kinds[0])) {
			remedy = "use one of them, or ask the platform team to add it to algorithm.pod.volumes of its settings"
		}
		return field.ErrorList{field.Invalid(at.Child(kinds[0]), v.Name,
			fmt.Sprintf("the platform allows only volumes of %s: %s", s.allowed(), remedy))}
	}
	errs := s.tokens(at, v)
	for _, found := range Unrestricted(nil, corev1.PodSpec{
		Containers: []corev1.Container{podspec.Restricted(corev1.Container{}, false)}, Volumes: []corev1.Volume{v},
	}) {
		errs = append(errs, field.Invalid(at, v.Name, found))
	}
	return errs
}

// allowed kinds of volumes in words.
func (s Volumes) allowed() string {
	if len(s.Kinds) == 0 {
		return "no kind"
	}
	kinds := make([]string, 0, len(s.Kinds))
	for _, kind := range s.Kinds {
		kinds = append(kinds, string(kind))
	}
	return strings.Join(kinds, ", ")
}

// tokens and certificates of the pod's identity need an account that the spec names: the one that Capstan makes has none, so that
// a right of it cannot leave the cluster by mistake.
func (s Volumes) tokens(at *field.Path, v corev1.Volume) field.ErrorList {
	if v.Projected == nil || s.Account != "" {
		return nil
	}
	var errs field.ErrorList
	for i, source := range v.Projected.Sources {
		var name string
		switch {
		case source.ServiceAccountToken != nil:
			name = "serviceAccountToken"
		case source.PodCertificate != nil:
			name = "podCertificate"
		default:
			continue
		}
		errs = append(errs, field.Invalid(at.Child("projected", "sources").Index(i).Child(name), v.Name,
			"needs an own account: set spec.pod.serviceAccountName, or remove it"))
	}
	return errs
}

// standard is the check of the API server for the Pod Security Standards.
var standard = sync.OnceValue(func() policy.Evaluator {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err) // The checks are part of the program.
	}
	return e
})

// Unrestricted parts of a pod, as the API server finds them in a namespace with the Pod Security Standard restricted.
func Unrestricted(annotations map[string]string, pod corev1.PodSpec) []string {
	pod.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	results := standard().EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()},
		&metav1.ObjectMeta{Annotations: annotations}, &pod)
	var found []string
	for _, r := range results {
		if !r.Allowed {
			found = append(found, fmt.Sprintf("breaks the Pod Security Standard restricted: %s: %s: correct or remove it", r.ForbiddenReason, r.ForbiddenDetail))
		}
	}
	return found
}
