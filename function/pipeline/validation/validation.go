// SPDX-License-Identifier: Apache-2.0

// Package validation checks what the schema of a Pipeline cannot see.
package validation

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/allow"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/jobpod"
	flinkpods "github.com/capstan-dev/capstan/function/pipeline/flink/pods"
	"github.com/capstan-dev/capstan/function/pipeline/pods"
	"github.com/capstan-dev/capstan/function/placement"
	podvalidation "github.com/capstan-dev/capstan/function/podspec/validation"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"

	_ "time/tzdata" // a schedule means the same wherever the function runs
)

var spec = field.NewPath("spec")

// Spec returns what is wrong with a spec that has its defaults and that the schema accepts. Written is the spec as the user wrote it, which
// still has the fields that no type has.
func Spec(s v1alpha1.PipelineSpec, written map[string]any, settings inputv1alpha1.Settings) field.ErrorList {
	return slices.Concat(
		mounts(s),
		podvalidation.GPU(spec.Child("resources"), s.Resources),
		podvalidation.Unknown(spec.Child("pod"), compose.Map(written, "pod")),
		podvalidation.Metadata(spec.Child("podMetadata"), s.PodMetadata),
		labels(s),
		placement.Check(spec.Child("pod"), &s.Pod.Scheduling),
		volumes(s, settings.Algorithm.Pod.Volumes),
		retry(s),
		schedule(s),
		spark(s),
		flink(s),
		environment(s),
	)
}

// mounts must not hide each other, nor the folders of the companion.
func mounts(s v1alpha1.PipelineSpec) field.ErrorList {
	var ms []podvalidation.Mount
	add := func(at *field.Path, path string) { ms = append(ms, podvalidation.Mount{Field: at, Path: path}) }
	if s.Resources.SharedMemory != nil {
		add(spec.Child("resources", "sharedMemory"), jobpod.SharedMemoryPath)
	}
	ms = append(ms, ownVolumes(s).Folders()...)
	errs := podvalidation.Mounts(ms)
	for _, m := range ms {
		for _, own := range pods.Reserved() {
			if podvalidation.Overlap(path.Clean(m.Path), own) != "" {
				errs = append(errs, field.Invalid(m.Field, m.Path, own+" is for the companion that starts the program: choose another folder"))
			}
		}
	}
	return errs
}

func volumes(s v1alpha1.PipelineSpec, kinds []inputv1alpha1.PodVolumeKind) field.ErrorList {
	var errs field.ErrorList
	rules := podvalidation.Volumes{Kinds: kinds, Account: s.Pod.ServiceAccountName, Reserved: pods.ReservedVolume}
	if s.Engine == v1alpha1.PipelineFlink {
		rules.Reserved = flinkpods.ReservedVolume
	}
	for i, v := range s.Pod.Volumes {
		errs = append(errs, rules.Volume(spec.Child("pod", "volumes").Index(i), v.Core)...)
	}
	return append(errs, ownVolumes(s).Unknown()...)
}

// ownVolumes that spec.volumeMounts can have.
func ownVolumes(s v1alpha1.PipelineSpec) podvalidation.Container {
	return podvalidation.Container{Spec: spec, Config: s.Config, Secrets: s.Secrets, Volumes: s.Pod.Volumes, Mounts: s.VolumeMounts}
}

// ownLabel is a label that Kubernetes gives the pods of a Job. It refuses a Job whose template has one.
var ownLabel = regexp.MustCompile(`^(batch\.kubernetes\.io/.*|job-name|controller-uid)$`)

// labels of pods must not be what Kubernetes selects the pods of a Job by.
func labels(s v1alpha1.PipelineSpec) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(s.PodMetadata.Labels)) {
		if ownLabel.MatchString(key) {
			errs = append(errs, field.Invalid(spec.Child("podMetadata", "labels"), key, "is set by Kubernetes for the pods of a Job: remove it"))
		}
	}
	return errs
}

// retry rules must be what the companion understands.
func retry(s v1alpha1.PipelineSpec) field.ErrorList {
	var errs field.ErrorList
	raises := false
	bounds := func(at *field.Path, b *v1alpha1.PipelineBackoff) {
		if b != nil && b.To.Duration < b.From.Duration {
			errs = append(errs, field.Invalid(at.Child("to"), b.To.Duration.String(), fmt.Sprintf("must be at least from, which is %s", b.From.Duration)))
		}
	}
	at := spec.Child("retry")
	bounds(at.Child("backoff"), s.Retry.Backoff)
	for i, rule := range s.Retry.Rules {
		at := at.Child("rules").Index(i)
		bounds(at.Child("backoff"), rule.Backoff)
		if _, err := regexp.Compile(rule.When.Pattern); err != nil {
			errs = append(errs, field.Invalid(at.Child("when", "pattern"), rule.When.Pattern, fmt.Sprintf("is no regular expression of RE2: %v: correct it", err)))
		}
		if rule.Do != v1alpha1.PipelineDoRetryWithMemory {
			continue
		}
		if s.Schedule == nil && s.Run == nil {
			errs = append(errs, field.Invalid(at.Child("do"), string(rule.Do), "needs schedule or run: a stream that failed has no other run. Remove the rule, and raise spec.resources.memory"))
		}
		if raises {
			errs = append(errs, field.Invalid(at.Child("do"), string(rule.Do), "one rule can raise the memory: remove the others"))
		}
		raises = true
		if rule.Max != nil && rule.Max.Cmp(*s.Resources.Memory) <= 0 {
			errs = append(errs, field.Invalid(at.Child("max"), rule.Max.String(), "must be more than spec.resources.memory, which is "+s.Resources.Memory.String()))
		}
	}
	return errs
}

// schedule must be what Kubernetes understands.
func schedule(s v1alpha1.PipelineSpec) field.ErrorList {
	if s.Schedule == nil {
		return nil
	}
	at := spec.Child("schedule")
	if _, err := time.LoadLocation(s.Schedule.TimeZone); err != nil {
		return field.ErrorList{field.Invalid(at.Child("timeZone"), s.Schedule.TimeZone, "is no name of the IANA time zone database: use one such as Europe/Berlin")}
	}
	times, _, err := Schedule(*s.Schedule)
	if err != nil {
		return field.ErrorList{field.Invalid(at.Child("cron"), s.Schedule.Cron, fmt.Sprintf("%v: correct it, for instance to 0 3 * * *", err))}
	}
	// The next five years have a leap year.
	if times.Next(time.Unix(0, 0)).IsZero() {
		return field.ErrorList{field.Invalid(at.Child("cron"), s.Schedule.Cron, "is a day that never comes: correct it, for instance to 0 3 * * *")}
	}
	return nil
}

// Schedule of a Pipeline, and its time zone.
func Schedule(s v1alpha1.PipelineSchedule) (cron.Schedule, *time.Location, error) {
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot find the time zone: %w", err)
	}
	schedule, err := cron.ParseStandard(s.Cron)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read cron: %w", err)
	}
	return schedule, zone, nil
}

// spark needs memory for its own processes, and what it sets itself cannot be set.
func spark(s v1alpha1.PipelineSpec) field.ErrorList {
	if s.Engine != v1alpha1.PipelineSpark {
		return nil
	}
	var errs field.ErrorList
	if least := resource.NewQuantity(pods.SparkMemory, resource.BinarySI); s.Resources.Memory.Cmp(*least) < 0 {
		errs = append(errs, field.Invalid(spec.Child("resources", "memory"), s.Resources.Memory.String(), "must be at least "+least.String()+" for Spark's own processes"))
	}
	if len(s.Args) == 0 && (s.Run == nil || len(s.Run.Args) == 0) {
		errs = append(errs, field.Required(spec.Child("args"), "must begin with the application: a Python file, or a jar with spark.mainClass"))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Spark.Conf)) {
		if slices.Contains(pods.SparkOwn, name) {
			errs = append(errs, field.Invalid(spec.Child("spark", "conf").Key(name), string(s.Spark.Conf[name]), "is set by Capstan, by resources and executors: remove it"))
		}
	}
	return errs
}

// flink has pods without claims of devices and without a volume for shared memory.
func flink(s v1alpha1.PipelineSpec) field.ErrorList {
	if s.Engine != v1alpha1.PipelineFlink || s.Flink == nil {
		return nil
	}
	var errs field.ErrorList
	check := func(at *field.Path, r *v1alpha1.Resources) {
		const without = "no pod of Flink gets it: remove it"
		if r.DeviceRequest != nil {
			errs = append(errs, field.Invalid(at.Child("deviceRequest"), r.DeviceRequest.DeviceClassName, without+", and set gpu to a resource that nodes advertise"))
		}
		if r.SharedMemory != nil {
			errs = append(errs, field.Invalid(at.Child("sharedMemory"), r.SharedMemory.String(), without))
		}
	}
	check(spec.Child("resources"), s.Resources)
	if r := s.Flink.TaskManagerResources; r != nil {
		at := spec.Child("flink", "taskManagerResources")
		check(at, r)
		errs = append(errs, podvalidation.GPU(at, r)...)
	}
	return errs
}

// own variables of the companion, beside those that begin with CAPSTAN_. Kubernetes sets it only where the pod has none: all pods would
// take themselves for the same one.
var own = []string{"JOB_COMPLETION_INDEX"}

var ownPrefix = regexp.MustCompile(`^CAPSTAN_`)

// environment must not have variables that Capstan sets.
func environment(s v1alpha1.PipelineSpec) field.ErrorList {
	var errs field.ErrorList
	for i, e := range s.Env {
		ofFlink := s.Engine == v1alpha1.PipelineFlink && slices.Contains(flinkpods.OwnEnv(), e.Name)
		if slices.Contains(own, e.Name) || ownPrefix.MatchString(e.Name) || ofFlink {
			errs = append(errs, field.Invalid(spec.Child("env").Index(i).Child("name"), e.Name, "is set by Capstan: remove it, or choose another name"))
		}
	}
	return errs
}

// Allowed returns what a spec with its defaults asks for and the platform does not allow in the namespace. The lists of Algorithms hold,
// because the pods could be either's.
func Allowed(namespace string, s v1alpha1.PipelineSpec, settings inputv1alpha1.Settings) field.ErrorList {
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
