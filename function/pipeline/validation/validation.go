// SPDX-License-Identifier: Apache-2.0

// Package validation checks what the schema of a Pipeline cannot see.
package validation

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	flinkapi "github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	jobvalidation "github.com/capstan-dev/capstan/function/jobpod/validation"
	flinkpods "github.com/capstan-dev/capstan/function/pipeline/flink/pods"
	"github.com/capstan-dev/capstan/function/pipeline/pods"
	podvalidation "github.com/capstan-dev/capstan/function/podspec/validation"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"

	_ "time/tzdata" // a schedule means the same wherever the function runs
)

var spec = field.NewPath("spec")

// Spec returns what is wrong with a spec that has its defaults and that the schema accepts. Written is the spec as the user wrote it, which
// still has the fields that no type has.
func Spec(s v1alpha1.PipelineSpec, written map[string]any, settings inputv1alpha1.Settings) field.ErrorList {
	job := ofJob(s, written)
	return slices.Concat(
		job.Pods(settings.Algorithm.Pod.Volumes),
		retry(s),
		schedule(s),
		spark(s),
		flink(s),
		metrics(s),
		job.Environment(),
	)
}

// ofJob are the fields that describe the pods. Kubernetes sets JOB_COMPLETION_INDEX only where the pod has none: all pods would take
// themselves for the same one.
func ofJob(s v1alpha1.PipelineSpec, written map[string]any) jobvalidation.Job {
	job := jobvalidation.Job{
		Written: written, Resources: s.Resources, Pod: s.Pod, PodMetadata: s.PodMetadata, Config: s.Config, Secrets: s.Secrets,
		VolumeMounts: s.VolumeMounts, Env: s.Env,
		ReservedFolders: pods.Reserved(), ReservedFor: "the companion that starts the program", ReservedVolume: pods.ReservedVolume,
		ReservedEnv: []string{"JOB_COMPLETION_INDEX"}, ReservedEnvIs: "is set by Capstan",
	}
	if s.Engine == v1alpha1.PipelineFlink {
		job.ReservedVolume = flinkpods.ReservedVolume
		job.ReservedEnv = append(job.ReservedEnv, flinkpods.OwnEnv()...)
	}
	return job
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

// metrics of a program have a port that Capstan does not use.
func metrics(s v1alpha1.PipelineSpec) field.ErrorList {
	if s.Metrics == nil || s.Metrics.Port == nil {
		return nil
	}
	port := *s.Metrics.Port
	used := []int32{runner.StatePort}
	switch s.Engine {
	case v1alpha1.PipelineSpark:
		used = append(used, pods.SparkPorts()...)
	case v1alpha1.PipelineFlink:
		used = append(used, flinkapi.RestPort, flinkapi.BlobPort, flinkapi.DataPort, flinkapi.TaskRPCPort)
	case v1alpha1.PipelineContainer:
	}
	rpc := s.Engine == v1alpha1.PipelineFlink && port >= flinkapi.FirstRPCPort && port < flinkapi.FirstRPCPort+flinkapi.RPCPorts
	if !rpc && !slices.Contains(used, port) {
		return nil
	}
	return field.ErrorList{field.Invalid(spec.Child("metrics", "port"), port, "is a port that Capstan uses: serve your metrics on another one, or remove it")}
}

// Allowed returns what a spec with its defaults asks for and the platform does not allow in the namespace.
func Allowed(namespace string, s v1alpha1.PipelineSpec, settings inputv1alpha1.Settings) field.ErrorList {
	may := settings.Algorithm.Allowed
	return append(jobvalidation.Account(namespace, s.Pod, may), jobvalidation.Scheduling(namespace, s.Pod, may)...)
}
