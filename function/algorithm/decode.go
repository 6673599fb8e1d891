// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/modeluri"
	"github.com/capstan-dev/capstan/function/algorithm/validation"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/definition"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// theDefinition of Algorithms.
var theDefinition = definition.Once(apis.Algorithm)

// read the spec of an Algorithm: as it is written with the defaults of its schema, and as it is carried out. It reports all
// problems, so that one edit can correct everything.
func read(r compose.Request) (written, spec v1alpha1.AlgorithmSpec, problems []check.Problem) {
	xr := r.Composite.Map()
	name := compose.Text(xr, "metadata", "name")
	objects := []string{"availability", "probes"}
	if needsMetrics(compose.Map(xr, "spec")) {
		objects = append(objects, "metrics")
	}
	written, found, ok := definition.Decode[v1alpha1.AlgorithmSpec](theDefinition(), name, compose.Map(xr, "spec"), objects...)
	if ok {
		spec = defaulted(written, r.Settings.Algorithm)
	}
	if ok && len(found) == 0 {
		found = check.Errors(slices.Concat(
			validation.Spec(name, spec), validation.Pod(spec, compose.Map(xr, "spec"), r.Settings.Algorithm.Pod),
			validation.Hooks(spec, compose.Map(xr, "spec")),
			validation.Allowed(compose.Text(xr, "metadata", "namespace"), spec, r.Settings.Algorithm)))
	}
	return written, spec, slices.Concat(r.Unsupported, checkSettings(r), checkConfig(xr), found)
}

// needsMetrics reports whether what a spec asks for needs metrics of the pods.
func needsMetrics(spec map[string]any) bool {
	scaling := compose.Map(spec, "scaling")
	signal := compose.Text(scaling, "signal")
	return spec["objectives"] != nil || spec["lifecycle"] != nil || spec["slo"] != nil ||
		compose.Number(scaling, 1, "minReplicas") == 0 || scaling["targetLatencyMs"] != nil ||
		signal != "" && signal != string(observev1alpha1.SignalCPU)
}

// maxConfig leaves a quarter of the MiB that a ConfigMap may hold for its names and metadata, in bytes.
const maxConfig = 786432

// checkConfig has a reason of its own, which the rule of the schema cannot give.
func checkConfig(xr map[string]any) []check.Problem {
	total := 0
	for _, content := range compose.Map(xr, "spec", "config") {
		text, _ := content.(string)
		total += len(text)
	}
	if total <= maxConfig {
		return nil
	}
	return []check.Problem{{Reason: v1alpha1.ReasonConfigTooLarge, Message: fmt.Sprintf(
		"spec.config: %d bytes altogether: must be at most %d: put large files into the image", total, maxConfig)}}
}

// leastMemory that could mean anything: a small m is a thousandth, so that 512m is half a byte.
var leastMemory = resource.MustParse("1Mi")

// checkSettings that every Algorithm needs.
func checkSettings(r compose.Request) []check.Problem {
	if r.SettingsErr != nil {
		return check.Settings(r.SettingsErr)
	}
	var ps []check.Problem
	s := r.Settings.Algorithm
	for _, q := range []struct {
		name  string
		value *resource.Quantity
		least resource.Quantity
	}{
		{"cpu", s.CPU, resource.MustParse("1m")},
		{"memory", s.Memory, leastMemory},
		{"gpu.cpu", s.GPU.CPU, resource.MustParse("1m")},
		{"gpu.memory", s.GPU.Memory, leastMemory},
	} {
		if q.value == nil || q.value.Cmp(q.least) < 0 {
			ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSettings, Message: fmt.Sprintf(
				"platform settings: algorithm.%s: %v: must be set and at least %s", q.name, q.value, q.least.String())})
		}
	}
	return ps
}

// usualIdle is how long, in seconds, no request must come before an Algorithm sleeps.
const usualIdle = 600

// defaulted spec: what depends on other fields or on the platform's settings. The schema has the other defaults.
func defaulted(s v1alpha1.AlgorithmSpec, settings inputv1alpha1.AlgorithmSettings) v1alpha1.AlgorithmSpec {
	s = *s.DeepCopy()
	if s.Replicas != nil && *s.Replicas == 0 {
		s.Scaling = nil // An autoscaler would start replicas again, or be of no use.
	}
	defaultPods(&s, settings)
	if m := s.Metrics; m != nil {
		m.ProviderConfigReference = cmp.Or(m.ProviderConfigReference, settings.Prometheus)
	}
	if sc := s.Scaling; sc != nil && sc.Signal == "" {
		switch {
		case sc.TargetLatencyMs != nil:
			sc.Signal = string(observev1alpha1.SignalAuto)
		case !s.Resources.Accelerated():
			sc.Signal = string(observev1alpha1.SignalCPU)
		}
	}
	if sc := s.Scaling; sc != nil && sc.MinReplicas == 0 {
		sc.IdleAfterSeconds = cmp.Or(sc.IdleAfterSeconds, new(int32(usualIdle)))
	}
	if r := s.Route; r != nil {
		r.Gateway = cmp.Or(r.Gateway, settings.Gateway)
	}
	defaultEvidence(&s)
	if m, r := s.Model, settings.MLflow; m != nil && r != nil && m.Config == "" && modeluri.Parse(m.URI).Scheme == modeluri.Registry {
		m.Config = r.Kind + "/" + r.Name
	}
	return s
}

// defaultPods sets what the pods have without a field, or by the platform's settings.
func defaultPods(s *v1alpha1.AlgorithmSpec, settings inputv1alpha1.AlgorithmSettings) {
	s.Resources = cmp.Or(s.Resources, &v1alpha1.Resources{})
	s.Pod = cmp.Or(s.Pod, &v1alpha1.PodSpec{})
	s.Pod.SecurityContext = cmp.Or(s.Pod.SecurityContext, &v1alpha1.PodSecurity{})
	s.PodMetadata = cmp.Or(s.PodMetadata, &v1alpha1.PodMetadata{})
	cpu, memory := settings.CPU, settings.Memory
	if s.Resources.Accelerated() {
		cpu, memory = settings.GPU.CPU, settings.GPU.Memory
	}
	if s.Resources.GPU != "" {
		s.Resources.GPUCount = cmp.Or(s.Resources.GPUCount, new(int32(1)))
	}
	s.Resources.CPU = cmp.Or(s.Resources.CPU, cpu)
	s.Resources.Memory = cmp.Or(s.Resources.Memory, memory)
	if m := s.Model; m != nil {
		m.Delivery = settings.ModelImages
		if m.Digest != "" || m.Cache != nil {
			m.Delivery = v1alpha1.DeliverInitContainer // A node compares nothing, and has a cache of its own.
		}
	}
}

// defaultEvidence of revisions: what they must meet, where it depends on other fields.
func defaultEvidence(s *v1alpha1.AlgorithmSpec) {
	s.Objectives = cmp.Or(s.Objectives, &v1alpha1.Objectives{LatencyPercentile: usualPercentile})
	if sc := s.Scaling; sc != nil {
		s.Objectives.LatencyMs = cmp.Or(s.Objectives.LatencyMs, sc.TargetLatencyMs)
	}
	if s.Lifecycle != nil {
		defaultLifecycle(s.Lifecycle, *s.Objectives)
	}
}

// Defaults of the schema for blocks that can be absent: they hold also then.
const (
	usualPercentile  = 95
	usualSuccess     = 0.99
	usualDriftMethod = v1alpha1.DriftPSI
	usualDrift       = 0.2
)

// defaultLifecycle sets what depends on other fields. An objective of the live revision is one of a candidate.
func defaultLifecycle(l *v1alpha1.Lifecycle, o v1alpha1.Objectives) {
	if len(l.Steps) == 0 {
		l.CanaryWeight = cmp.Or(l.CanaryWeight, new(int32(20)))
	}
	l.SuccessThreshold = cmp.Or(l.SuccessThreshold, o.SuccessRatio, new(usualSuccess))
	l.RollbackOnDrift = cmp.Or(l.RollbackOnDrift, new(l.Drift != nil))
	if l.Drift == nil && *l.RollbackOnDrift {
		l.Drift = &v1alpha1.Drift{Method: usualDriftMethod, Max: new(usualDrift)}
	}
}
