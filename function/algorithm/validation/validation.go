// SPDX-License-Identifier: Apache-2.0

// Package validation checks what the schema of an Algorithm cannot see: fields that depend on others far away, on the platform's
// settings, on rules of Kubernetes for the composed objects, and on objects that exist.
package validation

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/pods"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/placement"
	podvalidation "github.com/capstan-dev/capstan/function/podspec/validation"
)

var spec = field.NewPath("spec")

// Spec returns what is wrong with a spec that has its defaults and that the schema accepts.
func Spec(name string, s v1alpha1.AlgorithmSpec) field.ErrorList {
	return slices.Concat(objectName(name), mounts(s), podvalidation.GPU(spec.Child("resources"), s.Resources), ports(s), gateway(s), lifecycle(s), experiment(s), labels(s))
}

var ownSuffix = regexp.MustCompile(`-slot-(a|b|live|activator)$`)

// objectName must not be one of an object that Kubernetes makes: a Service or ServiceAccount of that name would be taken over,
// and deleted with the Algorithm.
func objectName(name string) field.ErrorList {
	at := field.NewPath("metadata", "name")
	switch {
	case ownSuffix.MatchString(name):
		return field.ErrorList{field.Invalid(at, name, "ends like an object of another Algorithm: choose another name")}
	case name == "default" || name == "kubernetes":
		return field.ErrorList{field.Invalid(at, name, "is the name of an object that Kubernetes makes: choose another name")}
	default:
		return nil
	}
}

// mounts must not hide each other, and none can be created inside another that is mounted read-only.
func mounts(s v1alpha1.AlgorithmSpec) field.ErrorList {
	var ms []podvalidation.Mount
	if s.Resources.SharedMemory != nil {
		ms = append(ms, podvalidation.Mount{Field: spec.Child("resources", "sharedMemory"), Path: pods.SharedMemoryPath})
	}
	return podvalidation.Mounts(slices.Concat(ms, ownVolumes(s).Folders()))
}

// ownVolumes that spec.volumeMounts can have.
func ownVolumes(s v1alpha1.AlgorithmSpec) podvalidation.Container {
	c := podvalidation.Container{Spec: spec, Config: s.Config, Secrets: s.Secrets, Volumes: s.Pod.Volumes, Mounts: s.VolumeMounts}
	if s.Model != nil {
		c.Model, c.ModelPath = pods.VolumeModel, pods.ModelPath
	}
	return c
}

// ports that two containers of a pod would need.
func ports(s v1alpha1.AlgorithmSpec) field.ErrorList {
	if s.Probes.WarmUp == nil {
		return nil
	}
	var errs field.ErrorList
	const remedy = "is the port on which the warm-up reports that it is done: choose another, or remove spec.probes.warmUp"
	if *s.Port == pods.WarmUpPort {
		errs = append(errs, field.Invalid(spec.Child("port"), *s.Port, remedy))
	}
	if m := s.Metrics; m != nil && m.Port != nil && *m.Port == pods.WarmUpPort {
		errs = append(errs, field.Invalid(spec.Child("metrics", "port"), *m.Port, remedy))
	}
	return errs
}

func gateway(s v1alpha1.AlgorithmSpec) field.ErrorList {
	if s.Route == nil || s.Route.Gateway != nil {
		return nil
	}
	return field.ErrorList{field.Invalid(spec.Child("route", "gateway"), field.OmitValueType{},
		"is not set, and the platform's settings name no Gateway: set it to the name and namespace of one, "+
			"or ask the platform team to set algorithm.gateway")}
}

// labels are stricter in Kubernetes than in the schema.
func labels(s v1alpha1.AlgorithmSpec) field.ErrorList {
	errs := placement.Check(spec.Child("pod"), &s.Pod.Scheduling)
	if s.Access != nil {
		for i, c := range *s.Access {
			for _, key := range slices.Sorted(maps.Keys(c.PodLabels)) {
				errs = append(errs, metav1validation.ValidateLabelName(key, spec.Child("access").Index(i).Child("podLabels"))...)
			}
		}
	}
	return errs
}

// Claim returns what the cache of a model asks for and a claim that exists does not change. The schema refuses a change, but not
// that a cache is removed and comes back different.
func Claim(cache *v1alpha1.ModelCache, name string, claim map[string]any) field.ErrorList {
	if cache == nil || claim == nil {
		return nil
	}
	var errs field.ErrorList
	at := spec.Child("model", "cache")
	const remedy = "the volume that exists has %q, and keeps it: set that, or delete PersistentVolumeClaim %q once no replica mounts it"
	if class := compose.Text(claim, "spec", "storageClassName"); cache.StorageClassName != "" && class != "" && class != cache.StorageClassName {
		errs = append(errs, field.Invalid(at.Child("storageClassName"), cache.StorageClassName, fmt.Sprintf(remedy, class, name)))
	}
	if modes := compose.List(claim, "spec", "accessModes"); len(modes) == 1 && modes[0] != string(cache.AccessModes[0]) {
		errs = append(errs, field.Invalid(at.Child("accessModes").Index(0), string(cache.AccessModes[0]), fmt.Sprintf(remedy, modes[0], name)))
	}
	return errs
}
