// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/definition"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/pipeline/validation"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// Defaults of the schema for a block that can be absent: they hold also then. The last two are of a rule.
const (
	usualAttempts = 3
	usualFrom     = 10 * time.Second
	usualTo       = 10 * time.Minute
	usualGrowth   = 2.0
	usualJitter   = 20
	usualReset    = time.Hour
	usualHistory  = 10

	usualFactor = 1.5
	usualRaises = 2
)

// usualMemory of a pod of Spark or Flink.
var usualMemory = resource.MustParse("2Gi")

// theDefinition of Pipelines.
var theDefinition = definition.Once(apis.Pipeline)

// read the spec of a Pipeline with all its defaults, and the revision of what reaches the pods. It reports all problems, so that one edit
// can correct everything.
func read(r compose.Request) (spec v1alpha1.PipelineSpec, revision string, problems []check.Problem) {
	xr := r.Composite.Map()
	written, found, ok := definition.Decode[v1alpha1.PipelineSpec](theDefinition(), compose.Text(xr, "metadata", "name"), compose.Map(xr, "spec"))
	if ok {
		spec = defaulted(written, r.Settings.Algorithm)
	}
	if ok && len(found) == 0 {
		found = check.Errors(slices.Concat(
			validation.Spec(spec, compose.Map(xr, "spec"), r.Settings),
			validation.Allowed(compose.Text(xr, "metadata", "namespace"), spec, r.Settings)))
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
func defaulted(s v1alpha1.PipelineSpec, settings inputv1alpha1.AlgorithmSettings) v1alpha1.PipelineSpec {
	s = *s.DeepCopy()
	s.Resources = cmp.Or(s.Resources, &v1alpha1.Resources{})
	s.Pod = cmp.Or(s.Pod, &v1alpha1.JobPod{})
	s.Pod.SecurityContext = cmp.Or(s.Pod.SecurityContext, &v1alpha1.PodSecurity{})
	s.PodMetadata = cmp.Or(s.PodMetadata, &v1alpha1.PodMetadata{})
	s.KeepFinishedFor = cmp.Or(s.KeepFinishedFor, &metav1.Duration{})
	cpu, memory := settings.CPU, settings.Memory
	if s.Resources.Accelerated() {
		cpu, memory = settings.GPU.CPU, settings.GPU.Memory
	}
	if s.Engine != v1alpha1.PipelineContainer {
		memory = &usualMemory
	}
	if s.Resources.GPU != "" {
		s.Resources.GPUCount = cmp.Or(s.Resources.GPUCount, new(int32(1)))
	}
	s.Resources.CPU = cmp.Or(s.Resources.CPU, cpu)
	s.Resources.Memory = cmp.Or(s.Resources.Memory, memory)
	if s.Engine == v1alpha1.PipelineSpark {
		s.Spark = cmp.Or(s.Spark, &v1alpha1.PipelineSparkSpec{})
		s.Spark.Home = cmp.Or(s.Spark.Home, "/opt/spark")
		s.Spark.Executors = cmp.Or(s.Spark.Executors, new(int32(1)))
	}
	s.Retry = cmp.Or(s.Retry, &v1alpha1.PipelineRetry{})
	s.Retry.Attempts = cmp.Or(s.Retry.Attempts, new(int32(usualAttempts)))
	s.Retry.ResetAfter = cmp.Or(s.Retry.ResetAfter, &metav1.Duration{Duration: usualReset})
	s.Retry.Backoff = backoff(cmp.Or(s.Retry.Backoff, &v1alpha1.PipelineBackoff{}))
	for i := range s.Retry.Rules {
		if b := s.Retry.Rules[i].Backoff; b != nil {
			s.Retry.Rules[i].Backoff = backoff(b)
		}
	}
	return s
}

func backoff(b *v1alpha1.PipelineBackoff) *v1alpha1.PipelineBackoff {
	b.From = cmp.Or(b.From, &metav1.Duration{Duration: usualFrom})
	b.To = cmp.Or(b.To, &metav1.Duration{Duration: max(usualTo, b.From.Duration)})
	b.Factor = cmp.Or(b.Factor, new(usualGrowth))
	b.JitterPercent = cmp.Or(b.JitterPercent, new(int32(usualJitter)))
	return b
}

// managed fields of a spec do not reach the pods of a stream.
var managed = []string{"suspend", "concurrency", "keepFinishedFor", "history", "schedule", "run", "lineage", "metrics"}

// usual values of fields mean the same as none, so that a field that comes with a later version rolls no stream.
var usual = sync.OnceValue(func() map[string]any {
	values := theDefinition().Fields()
	values["resources.gpuCount"] = 1.0
	return values
})

// revisionOf a spec: the hash of what reaches the pods.
func revisionOf(written v1alpha1.PipelineSpec) (string, error) {
	s := *written.DeepCopy()
	jobpod.Uniform(s.Secrets, s.Resources)
	in := jobpod.PodInputs{Managed: managed, Usual: usual()}
	return in.Revision(s) //nolint:wrapcheck // The caller says what it was for.
}
