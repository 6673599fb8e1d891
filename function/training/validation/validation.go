// SPDX-License-Identifier: Apache-2.0

// Package validation checks what the schema of a Training cannot see.
package validation

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/allow"
	"github.com/capstan-dev/capstan/function/check"
	jobvalidation "github.com/capstan-dev/capstan/function/jobpod/validation"
	podvalidation "github.com/capstan-dev/capstan/function/podspec/validation"
	"github.com/capstan-dev/capstan/function/training/pods"
	"github.com/capstan-dev/capstan/function/training/runs"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

var spec = field.NewPath("spec")

// Spec returns what is wrong with a spec that has its defaults and that the schema accepts. Written is the spec as the user wrote it, which
// still has the fields that no type has.
func Spec(s v1alpha1.TrainingSpec, written map[string]any, settings inputv1alpha1.Settings) field.ErrorList {
	job := ofJob(s, written)
	return slices.Concat(
		job.Pods(settings.Algorithm.Pod.Volumes),
		patterns(s),
		job.Environment(),
		schedule(s),
		metrics(s.Metrics),
	)
}

// ofJob are the fields that describe the pods.
func ofJob(s v1alpha1.TrainingSpec, written map[string]any) jobvalidation.Job {
	job := jobvalidation.Job{
		Written: written, Resources: s.Resources, Pod: s.Pod, PodMetadata: s.PodMetadata, Config: s.Config, Secrets: s.Secrets,
		VolumeMounts: s.VolumeMounts, Env: s.Env,
		ReservedFolders: pods.Reserved(), ReservedFor: "the program that starts the ranks", ReservedVolume: pods.ReservedVolume,
		ReservedEnv: ownEnv, ReservedEnvIs: "is set by Capstan for each rank",
	}
	if s.Checkpoint != nil {
		job.Mounts = []podvalidation.Mount{{Field: spec.Child("checkpoint", "path"), Path: s.Checkpoint.Path}}
	}
	return job
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

// ownEnv are the variables of a rank, beside those that begin with CAPSTAN_.
var ownEnv = []string{
	"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT",
	"TORCHELASTIC_RUN_ID",
	// Kubernetes sets it only where the pod has none: all pods would take themselves for the same member.
	"JOB_COMPLETION_INDEX",
}

// schedule must name times that come.
func schedule(s v1alpha1.TrainingSpec) field.ErrorList {
	if s.Schedule == nil {
		return nil
	}
	at, cron, zone := spec.Child("schedule"), s.Schedule.Cron, s.Schedule.TimeZone
	switch times, err := runs.NewSchedule(cron, zone); {
	case errors.Is(err, runs.ErrZone):
		return field.ErrorList{field.Invalid(at.Child("timeZone"), zone, err.Error())}
	case err != nil:
		return field.ErrorList{field.Invalid(at.Child("cron"), cron, err.Error())}
	case times.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero():
		return field.ErrorList{field.Invalid(at.Child("cron"), cron, "names a day that never comes: choose another one")}
	default:
		return nil
	}
}

// metrics must not be on a port of the companion or of the ranks, which a policy would open for what scrapes.
func metrics(m *v1alpha1.TrainingMetrics) field.ErrorList {
	if m == nil || m.Port == nil {
		return nil
	}
	port := *m.Port
	var why string
	switch {
	case port == crew.Port:
		why = "is where the companions of a run find each other"
	case port == crew.StatePort:
		why = "has the state of the run, which is scraped anyway"
	case port >= crew.MasterPort && port < crew.MasterPort+crew.MasterPorts:
		why = "is where rank 0 listens for the other ranks"
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(spec.Child("metrics", "port"), port, why+": serve your metrics on another port, or remove it")}
}

// Allowed returns what a spec with its defaults asks for and the platform does not allow in the namespace.
func Allowed(namespace string, s v1alpha1.TrainingSpec, settings inputv1alpha1.Settings) field.ErrorList {
	may := settings.Algorithm.Allowed
	return slices.Concat(
		jobvalidation.Account(namespace, s.Pod, may),
		queue(namespace, s, settings.Training.Allowed.Queues),
		jobvalidation.Scheduling(namespace, s.Pod, may),
	)
}

// queue that the platform allows. Where it has a list, a Training without a queue would be beside all of them.
func queue(namespace string, s v1alpha1.TrainingSpec, entries []inputv1alpha1.Allowed) field.ErrorList {
	name := ""
	if s.Queue != nil {
		name = s.Queue.Name
	}
	list := allow.List{Setting: "training.allowed.queues", Namespace: namespace, Entries: entries}
	if why := list.Name(name); why != "" {
		return field.ErrorList{field.Invalid(spec.Child("queue", "name"), name, why)}
	}
	return nil
}

// Limits returns what a spec with its defaults has more of than the platform allows.
func Limits(s v1alpha1.TrainingSpec, settings inputv1alpha1.TrainingSettings) field.ErrorList {
	var errs field.ErrorList
	pods := *s.Workers + *s.Spares
	if n := settings.MaxWorkers; n != nil && pods > *n {
		errs = append(errs, field.Invalid(spec.Child("workers"), *s.Workers, fmt.Sprintf(
			"with spares the Training has %d pods, and the platform allows %d: lower workers or spares, or ask the platform team to raise training.maxWorkers of its settings",
			pods, *n)))
	}
	at, each := devices(s.Resources)
	if n, all := settings.MaxGPUs, int64(pods)*each; n != nil && all > int64(*n) {
		errs = append(errs, field.Invalid(at, each, fmt.Sprintf(
			"all %d pods together have %d GPUs, and the platform allows %d: lower it, workers or spares, or ask the platform team to raise training.maxGPUs of its settings",
			pods, all, *n)))
	}
	if d := settings.MaxDeadline; d != nil && s.Deadline != nil && s.Deadline.Duration > d.Duration {
		errs = append(errs, field.Invalid(spec.Child("deadline"), check.Duration(s.Deadline.Duration), fmt.Sprintf(
			"the platform allows at most %s: lower it, or ask the platform team to raise training.maxDeadline of its settings", check.Duration(d.Duration))))
	}
	return errs
}

// devices of one pod, and the field that has their number.
func devices(r *v1alpha1.Resources) (at *field.Path, each int64) {
	at = spec.Child("resources")
	switch {
	case r.GPUCount != nil:
		return at.Child("gpuCount"), int64(*r.GPUCount)
	case r.DeviceRequest != nil:
		return at.Child("deviceRequest", "count"), *cmp.Or(r.DeviceRequest.Count, new(int64(1)))
	default:
		return at, 0
	}
}
