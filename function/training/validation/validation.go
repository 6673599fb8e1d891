// SPDX-License-Identifier: Apache-2.0

// Package validation checks what the schema of a Training cannot see.
package validation

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/allow"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/placement"
	podvalidation "github.com/capstan-dev/capstan/function/podspec/validation"
	"github.com/capstan-dev/capstan/function/training/pods"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

var spec = field.NewPath("spec")

// Spec returns what is wrong with a spec that has its defaults and that the schema accepts. Written is the spec as the user wrote it, which
// still has the fields that no type has.
func Spec(s v1alpha1.TrainingSpec, written map[string]any, settings inputv1alpha1.Settings) field.ErrorList {
	return slices.Concat(
		mounts(s),
		podvalidation.GPU(spec.Child("resources"), s.Resources),
		podvalidation.Unknown(spec.Child("pod"), compose.Map(written, "pod")),
		podvalidation.Metadata(spec.Child("podMetadata"), s.PodMetadata),
		labels(s),
		placement.Check(spec.Child("pod"), &s.Pod.Scheduling),
		volumes(s, settings.Algorithm.Pod.Volumes),
		patterns(s),
		environment(s),
	)
}

// mounts must not hide each other, nor the folders of the companion.
func mounts(s v1alpha1.TrainingSpec) field.ErrorList {
	var ms []podvalidation.Mount
	add := func(at *field.Path, path string) { ms = append(ms, podvalidation.Mount{Field: at, Path: path}) }
	if s.Resources.SharedMemory != nil {
		add(spec.Child("resources", "sharedMemory"), jobpod.SharedMemoryPath)
	}
	if s.Checkpoint != nil {
		add(spec.Child("checkpoint", "path"), s.Checkpoint.Path)
	}
	if s.Config != nil {
		add(spec.Child("config", "mountPath"), s.Config.MountPath)
	}
	for i, secret := range s.Secrets {
		add(spec.Child("secrets").Index(i).Child("mountPath"), secret.MountPath)
	}
	for i, m := range s.VolumeMounts {
		add(spec.Child("volumeMounts").Index(i).Child("mountPath"), m.MountPath)
	}
	errs := podvalidation.Mounts(ms)
	for _, m := range ms {
		for _, own := range pods.Reserved() {
			if podvalidation.Overlap(path.Clean(m.Path), own) != "" {
				errs = append(errs, field.Invalid(m.Field, m.Path, own+" is for the program that starts the ranks: choose another folder"))
			}
		}
	}
	return errs
}

func volumes(s v1alpha1.TrainingSpec, kinds []inputv1alpha1.PodVolumeKind) field.ErrorList {
	var errs field.ErrorList
	rules := podvalidation.Volumes{Kinds: kinds, Account: s.Pod.ServiceAccountName, Reserved: pods.ReservedVolume}
	for i, v := range s.Pod.Volumes {
		errs = append(errs, rules.Volume(spec.Child("pod", "volumes").Index(i), v.Core)...)
	}
	for i, m := range s.VolumeMounts {
		if !slices.ContainsFunc(s.Pod.Volumes, func(v v1alpha1.PodVolume) bool { return v.Name == m.Name }) {
			errs = append(errs, field.Invalid(spec.Child("volumeMounts").Index(i).Child("name"), m.Name, "is no volume of spec.pod.volumes: add it there"))
		}
	}
	return errs
}

// ownLabel is a label that Kubernetes gives the pods of a Job. It refuses a Job whose template has one.
var ownLabel = regexp.MustCompile(`^(batch\.kubernetes\.io/.*|job-name|controller-uid)$`)

// labels of pods must not be what Kubernetes selects the pods of a Job by.
func labels(s v1alpha1.TrainingSpec) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(s.PodMetadata.Labels)) {
		if ownLabel.MatchString(key) {
			errs = append(errs, field.Invalid(spec.Child("podMetadata", "labels"), key, "is set by Kubernetes for the pods of a Job: remove it"))
		}
	}
	return errs
}

// patterns must be what the companion understands.
func patterns(s v1alpha1.TrainingSpec) field.ErrorList {
	var errs field.ErrorList
	if c := s.Checkpoint; c != nil {
		if _, err := path.Match(c.Complete, ""); err != nil {
			errs = append(errs, field.Invalid(spec.Child("checkpoint", "complete"), c.Complete, "is no pattern: brackets must be closed, for instance step-*/DONE"))
		}
	}
	w := s.Watch
	if w == nil {
		return errs
	}
	at := spec.Child("watch")
	if w.Progress != "" {
		switch re, err := regexp.Compile(w.Progress); {
		case err != nil:
			errs = append(errs, field.Invalid(at.Child("progress"), w.Progress, fmt.Sprintf("is no regular expression of RE2: %v: correct it", err)))
		case re.SubexpIndex("step") < 0:
			errs = append(errs, field.Invalid(at.Child("progress"), w.Progress, `must have the named group step, for instance step=(?P<step>\d+)`))
		}
	}
	for i, f := range w.Faults {
		if _, err := regexp.Compile(f.Pattern); err != nil {
			errs = append(errs, field.Invalid(at.Child("faults").Index(i).Child("pattern"), f.Pattern,
				fmt.Sprintf("is no regular expression of RE2: %v: correct it", err)))
		}
	}
	return errs
}

// own variables of a rank, beside those that begin with CAPSTAN_.
var own = []string{
	"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT",
	"TORCHELASTIC_RUN_ID",
	// Kubernetes sets it only where the pod has none: all pods would take themselves for the same member.
	"JOB_COMPLETION_INDEX",
}

var ownPrefix = regexp.MustCompile(`^CAPSTAN_`)

// environment must not have variables that the crew sets for each rank.
func environment(s v1alpha1.TrainingSpec) field.ErrorList {
	var errs field.ErrorList
	for i, e := range s.Env {
		if slices.Contains(own, e.Name) || ownPrefix.MatchString(e.Name) {
			errs = append(errs, field.Invalid(spec.Child("env").Index(i).Child("name"), e.Name, "is set by Capstan for each rank: remove it, or choose another name"))
		}
	}
	return errs
}

// Allowed returns what a spec with its defaults asks for and the platform does not allow in the namespace. The lists of Algorithms hold,
// because the pods could be either's.
func Allowed(namespace string, s v1alpha1.TrainingSpec, settings inputv1alpha1.Settings) field.ErrorList {
	var errs field.ErrorList
	may, pod := settings.Algorithm.Allowed, spec.Child("pod")
	const setting = "algorithm.allowed"
	if account := s.Pod.ServiceAccountName; account != "" {
		list := allow.List{Setting: setting + ".serviceAccounts", Namespace: namespace, Entries: may.ServiceAccounts}
		if why := list.Name(account); why != "" {
			errs = append(errs, field.Invalid(pod.Child("serviceAccountName"), account, why))
		}
	}
	lists := placement.Lists{Setting: setting, Namespace: namespace, PriorityClasses: may.PriorityClasses, Tolerations: may.Tolerations}
	return append(errs, lists.Allowed(pod, &s.Pod.Scheduling)...)
}
