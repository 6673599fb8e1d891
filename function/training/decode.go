// SPDX-License-Identifier: Apache-2.0

package training

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/definition"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/training/validation"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// theDefinition of Trainings.
var theDefinition = definition.Once(apis.Training)

// read the spec of a Training with all its defaults, and the revision of what reaches the pods. It reports all problems, so that one edit
// can correct everything.
func read(r compose.Request) (spec v1alpha1.TrainingSpec, revision string, problems []check.Problem) {
	xr := r.Composite.Map()
	written, found, ok := definition.Decode[v1alpha1.TrainingSpec](theDefinition(), compose.Text(xr, "metadata", "name"), compose.Map(xr, "spec"))
	if ok {
		spec = defaulted(written, r.Settings)
	}
	if ok && len(found) == 0 {
		found = check.Errors(slices.Concat(
			validation.Spec(spec, compose.Map(xr, "spec"), r.Settings),
			validation.Allowed(compose.Text(xr, "metadata", "namespace"), spec, r.Settings),
			validation.Limits(spec, r.Settings.Training)))
	}
	problems = slices.Concat(r.Unsupported, check.Settings(r.SettingsErr), found)
	if len(problems) > 0 {
		return spec, "", problems
	}
	revision, err := revisionOf(written)
	if err != nil {
		return spec, "", []check.Problem{check.Invalid("spec", fmt.Sprint(err), "cannot be read: correct it")}
	}
	return spec, revision, nil
}

// defaulted spec: what depends on other fields or on the platform's settings. The schema has the other defaults.
func defaulted(s v1alpha1.TrainingSpec, platform inputv1alpha1.Settings) v1alpha1.TrainingSpec {
	settings := platform.Algorithm
	s = *s.DeepCopy()
	s.Resources = cmp.Or(s.Resources, &v1alpha1.Resources{})
	s.Pod = cmp.Or(s.Pod, &v1alpha1.JobPod{})
	s.Pod.SecurityContext = cmp.Or(s.Pod.SecurityContext, &v1alpha1.PodSecurity{})
	s.PodMetadata = cmp.Or(s.PodMetadata, &v1alpha1.PodMetadata{})
	s.Retry = cmp.Or(s.Retry, &v1alpha1.TrainingRetry{})
	s.Retry.Runs = cmp.Or(s.Retry.Runs, new(int32(usualRuns)))
	s.Retry.WithoutProgress = cmp.Or(s.Retry.WithoutProgress, new(int32(usualWithoutProgress)))
	s.Retry.Attempts = cmp.Or(s.Retry.Attempts, new(int32(usualAttempts)))
	cpu, memory := settings.CPU, settings.Memory
	if s.Resources.Accelerated() {
		cpu, memory = settings.GPU.CPU, settings.GPU.Memory
	}
	processes := int32(1)
	if s.Resources.GPU != "" {
		s.Resources.GPUCount = cmp.Or(s.Resources.GPUCount, new(int32(1)))
		processes = *s.Resources.GPUCount
	}
	s.ProcessesPerWorker = cmp.Or(s.ProcessesPerWorker, &processes)
	s.Resources.CPU = cmp.Or(s.Resources.CPU, cpu)
	s.Resources.Memory = cmp.Or(s.Resources.Memory, memory)
	if s.Resources.SharedMemory == nil && s.Resources.Memory != nil {
		s.Resources.SharedMemory = tenth(*s.Resources.Memory)
	}
	s.Deadline = cmp.Or(s.Deadline, platform.Training.MaxDeadline)
	if o := s.OnSuccess; o != nil && o.Register != nil && settings.MLflow != nil {
		o.Register.Config = cmp.Or(o.Register.Config, settings.MLflow.Kind+"/"+settings.MLflow.Name)
	}
	return s
}

// Defaults of the schema for a block that can be absent: they hold also then.
const (
	usualRuns            = 2
	usualWithoutProgress = 3
	usualAttempts        = 50
)

// tenth of an amount of memory, rounded up to whole MiB.
func tenth(memory resource.Quantity) *resource.Quantity {
	const mebi = 1 << 20
	return resource.NewQuantity((memory.Value()/10+mebi-1)/mebi*mebi, resource.BinarySI)
}

// managed fields of a spec do not reach the pods of a run.
var managed = []string{"suspend", "rerun", "keepFinishedFor", "onSuccess", "startWithin", "retry.runs", "schedule", "metrics", "lineage"}

// usual values of fields mean the same as none, so that a field that comes with a later version begins no run.
var usual = sync.OnceValue(func() map[string]any {
	values := theDefinition().Fields()
	values["resources.gpuCount"] = 1.0
	return values
})

// revisionOf a spec: the hash of what reaches the pods.
func revisionOf(written v1alpha1.TrainingSpec) (string, error) {
	s := *written.DeepCopy()
	jobpod.Uniform(s.Secrets, s.Resources)
	in := jobpod.PodInputs{Managed: managed, Usual: usual(), Claim: []string{"checkpoint", "claim"}}
	return in.Revision(s) //nolint:wrapcheck // The caller says what it was for.
}
