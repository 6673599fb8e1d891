// SPDX-License-Identifier: Apache-2.0

// Package validation checks the pods of Jobs in the fields that Trainings and Pipelines share, as far as a schema cannot.
package validation

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/allow"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/placement"
	podvalidation "github.com/capstan-dev/capstan/function/podspec/validation"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

var spec = field.NewPath("spec")

// A Job has the fields of a spec that describe the pods of its Jobs, with their defaults, and what its kind reserves.
type Job struct {
	// Written is the spec as the user wrote it, which still has the fields that no type has.
	Written      map[string]any
	Resources    *v1alpha1.Resources
	Pod          *v1alpha1.JobPod
	PodMetadata  *v1alpha1.PodMetadata
	Config       v1alpha1.Config
	Secrets      []v1alpha1.MountedSecret
	VolumeMounts []v1alpha1.PodVolumeMount
	Env          []v1alpha1.EnvVar

	// Mounts of fields that only this kind has.
	Mounts []podvalidation.Mount
	// ReservedFolders of the container, and ReservedFor, which says what has them.
	ReservedFolders []string
	ReservedFor     string
	// ReservedVolume reports whether Capstan uses the name of a volume.
	ReservedVolume func(name string) bool
	// ReservedEnv are variables that Capstan sets, beside those that begin with CAPSTAN_. ReservedEnvIs says so in a message.
	ReservedEnv   []string
	ReservedEnvIs string
}

// Pods returns what is wrong with the pods. The platform allows kinds of volumes.
func (j Job) Pods(kinds []inputv1alpha1.PodVolumeKind) field.ErrorList {
	return slices.Concat(
		j.mounts(),
		podvalidation.GPU(spec.Child("resources"), j.Resources),
		podvalidation.Unknown(spec.Child("pod"), compose.Map(j.Written, "pod")),
		podvalidation.Metadata(spec.Child("podMetadata"), j.PodMetadata),
		j.labels(),
		placement.Check(spec.Child("pod"), &j.Pod.Scheduling),
		j.volumes(kinds),
	)
}

// mounts must not hide each other, nor reserved folders.
func (j Job) mounts() field.ErrorList {
	var ms []podvalidation.Mount
	if j.Resources.SharedMemory != nil {
		ms = append(ms, podvalidation.Mount{Field: spec.Child("resources", "sharedMemory"), Path: jobpod.SharedMemoryPath})
	}
	ms = slices.Concat(ms, j.Mounts, j.container().Folders())
	errs := podvalidation.Mounts(ms)
	for _, m := range ms {
		for _, reserved := range j.ReservedFolders {
			if podvalidation.Overlap(path.Clean(m.Path), reserved) != "" {
				errs = append(errs, field.Invalid(m.Field, m.Path, reserved+" is for "+j.ReservedFor+": choose another folder"))
			}
		}
	}
	return errs
}

func (j Job) volumes(kinds []inputv1alpha1.PodVolumeKind) field.ErrorList {
	var errs field.ErrorList
	rules := podvalidation.Volumes{Kinds: kinds, Account: j.Pod.ServiceAccountName, Reserved: j.ReservedVolume}
	for i, v := range j.Pod.Volumes {
		errs = append(errs, rules.Volume(spec.Child("pod", "volumes").Index(i), v.Core)...)
	}
	return append(errs, j.container().Unknown()...)
}

// container with the volumes that spec.volumeMounts can have.
func (j Job) container() podvalidation.Container {
	return podvalidation.Container{Spec: spec, Config: j.Config, Secrets: j.Secrets, Volumes: j.Pod.Volumes, Mounts: j.VolumeMounts}
}

// jobLabel is a label that Kubernetes gives the pods of a Job. It refuses a Job whose template has one.
var jobLabel = regexp.MustCompile(`^(batch\.kubernetes\.io/.*|job-name|controller-uid)$`)

// labels of pods must not be what Kubernetes selects the pods of a Job by.
func (j Job) labels() field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(j.PodMetadata.Labels)) {
		if jobLabel.MatchString(key) {
			errs = append(errs, field.Invalid(spec.Child("podMetadata", "labels"), key, "is set by Kubernetes for the pods of a Job: remove it"))
		}
	}
	return errs
}

// Environment returns the variables that Capstan sets and the spec must not have.
func (j Job) Environment() field.ErrorList {
	var errs field.ErrorList
	for i, e := range j.Env {
		if slices.Contains(j.ReservedEnv, e.Name) || strings.HasPrefix(e.Name, "CAPSTAN_") {
			errs = append(errs, field.Invalid(spec.Child("env").Index(i).Child("name"), e.Name, j.ReservedEnvIs+": remove it, or choose another name"))
		}
	}
	return errs
}

// setting that has the lists of what pods may ask for. The lists of Algorithms hold, because the pods could be either's.
const setting = "algorithm.allowed"

// Account returns why the platform does not allow the account of pods in their namespace.
func Account(namespace string, pod *v1alpha1.JobPod, may inputv1alpha1.AllowedToAlgorithms) field.ErrorList {
	account := pod.ServiceAccountName
	if account == "" {
		return nil
	}
	list := allow.List{Setting: setting + ".serviceAccounts", Namespace: namespace, Entries: may.ServiceAccounts}
	if why := list.Name(account); why != "" {
		return field.ErrorList{field.Invalid(spec.Child("pod", "serviceAccountName"), account, why)}
	}
	return nil
}

// Scheduling returns what of the scheduling of pods the platform does not allow in their namespace.
func Scheduling(namespace string, pod *v1alpha1.JobPod, may inputv1alpha1.AllowedToAlgorithms) field.ErrorList {
	lists := placement.Lists{Setting: setting, Namespace: namespace, PriorityClasses: may.PriorityClasses, Tolerations: may.Tolerations}
	return lists.Allowed(spec.Child("pod"), &pod.Scheduling)
}
