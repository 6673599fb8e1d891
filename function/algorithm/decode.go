// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

const durationRemedy = "must be a time such as 30s or 2m"

// decode a spec. The schema keeps almost everything out that would not decode;
// what gets here nevertheless is a problem like any other. The types that parse
// text are looked at first, because their errors name no field.
func decode(spec map[string]any) (v1alpha1.AlgorithmSpec, []check.Problem) {
	var (
		s  v1alpha1.AlgorithmSpec
		ps []check.Problem
	)

	for _, f := range []struct {
		path   []string
		into   json.Unmarshaler
		remedy string
	}{
		{[]string{"resources", "cpu"}, &resource.Quantity{}, "must be a quantity such as 500m or 2"},
		{[]string{"resources", "memory"}, &resource.Quantity{}, "must be a quantity such as 512Mi or 2Gi"},
		{[]string{"resources", "sharedMemory"}, &resource.Quantity{}, "must be a quantity such as 512Mi or 2Gi"},
		{[]string{"availability", "maxUnavailable"}, &intstr.IntOrString{}, "must be a number or a share such as 25%"},
		{[]string{"model", "cache", "size"}, &resource.Quantity{}, "must be a quantity such as 20Gi"},
		{[]string{"metrics", "interval"}, &metav1.Duration{}, durationRemedy},
		{[]string{"metrics", "window"}, &metav1.Duration{}, durationRemedy},
		{[]string{"route", "timeout"}, &metav1.Duration{}, durationRemedy},
		{[]string{"slo", "window"}, &metav1.Duration{}, durationRemedy},
		{[]string{"lifecycle", "soak"}, &metav1.Duration{}, durationRemedy},
		{[]string{"lifecycle", "deadline"}, &metav1.Duration{}, durationRemedy},
		{[]string{"lifecycle", "bake"}, &metav1.Duration{}, durationRemedy},
		{[]string{"lifecycle", "drift", "reference"}, &metav1.Duration{}, durationRemedy},
	} {
		last := len(f.path) - 1

		v, ok := compose.Map(spec, f.path[:last]...)[f.path[last]]
		if !ok || v == nil {
			continue
		}

		raw, err := json.Marshal(v)
		if err == nil {
			err = f.into.UnmarshalJSON(raw)
		}

		if err != nil {
			ps = append(ps, check.Invalid("spec."+strings.Join(f.path, "."), v, f.remedy))
		}
	}

	if len(ps) > 0 {
		return s, ps
	}

	ps = check.Decode(spec, &s)

	return s, ps
}

// defaulted spec. The schema has set what does not depend on anything; it is
// repeated for composite resources that were stored before their schema had the
// default.
func defaulted(s v1alpha1.AlgorithmSpec, settings inputv1alpha1.Settings) v1alpha1.AlgorithmSpec {
	s.Replicas = cmp.Or(s.Replicas, new(int32(1)))
	s.Port = cmp.Or(s.Port, new(int32(8080)))
	s.Resources = cmp.Or(s.Resources, &v1alpha1.Resources{})
	s.Availability = cmp.Or(s.Availability, &v1alpha1.Availability{})
	s.Scheduling = cmp.Or(s.Scheduling, &v1alpha1.Scheduling{})

	s.Resources.CPU = cmp.Or(s.Resources.CPU, settings.Algorithm.CPU)
	s.Resources.Memory = cmp.Or(s.Resources.Memory, settings.Algorithm.Memory)

	if s.Resources.GPU != "" {
		s.Resources.GPUCount = cmp.Or(s.Resources.GPUCount, new(int32(1)))
	}

	s.Availability.MaxUnavailable = cmp.Or(s.Availability.MaxUnavailable, new(intstr.FromInt32(1)))
	s.Availability.Zones = cmp.Or(s.Availability.Zones, v1alpha1.SpreadPreferred)
	s.Availability.DrainSeconds = cmp.Or(s.Availability.DrainSeconds, new(int32(30)))

	if s.Config != nil {
		s.Config.MountPath = cmp.Or(s.Config.MountPath, "/etc/algorithm")
	}

	for i := range s.Secrets {
		s.Secrets[i].MountPath = cmp.Or(s.Secrets[i].MountPath, secretsPath+s.Secrets[i].Name)
		s.Secrets[i].Rotate = cmp.Or(s.Secrets[i].Rotate, v1alpha1.RotateRestartless)
	}

	if s.Scaling != nil {
		s.Scaling.MinReplicas = cmp.Or(s.Scaling.MinReplicas, 1)
		s.Scaling.Percentile = cmp.Or(s.Scaling.Percentile, 95)
		s.Scaling.ScaleDownAfterSeconds = cmp.Or(s.Scaling.ScaleDownAfterSeconds, new(int32(300)))
	}

	if m := s.Metrics; m != nil {
		m.Path = cmp.Or(m.Path, "/metrics")
		m.Interval = cmp.Or(m.Interval, &metav1.Duration{Duration: 30 * time.Second})
		m.Window = cmp.Or(m.Window, &metav1.Duration{Duration: 2 * time.Minute})
		m.ProviderConfigReference = cmp.Or(m.ProviderConfigReference, settings.Algorithm.Prometheus)
	}

	if r := s.Route; r != nil {
		r.Path = cmp.Or(r.Path, "/")
		r.Gateway = cmp.Or(r.Gateway, settings.Algorithm.Gateway)
	}

	defaultLifecycle(s.Lifecycle)
	defaultExperiment(s.Experiment)
	defaultSLO(s.SLO)
	s.RevisionHistoryLimit = cmp.Or(s.RevisionHistoryLimit, new(int32(2)))
	s.Probes = defaultedProbes(s.Probes)
	defaultModel(s.Model, settings)

	return s
}

func defaultLifecycle(l *v1alpha1.Lifecycle) {
	if l == nil {
		return
	}

	if len(l.Steps) == 0 {
		l.CanaryWeight = cmp.Or(l.CanaryWeight, new(int32(20)))
	}

	l.Soak = cmp.Or(l.Soak, &metav1.Duration{Duration: 2 * time.Minute})
	l.Deadline = cmp.Or(l.Deadline, &metav1.Duration{Duration: time.Hour})
	l.Bake = cmp.Or(l.Bake, &metav1.Duration{Duration: 30 * time.Minute})
	l.SuccessThreshold = cmp.Or(l.SuccessThreshold, new(0.99))
	l.MinSamples = cmp.Or(l.MinSamples, new(int32(100)))
	l.OnNoData = cmp.Or(l.OnNoData, v1alpha1.NoDataHold)
	l.Approval = cmp.Or(l.Approval, v1alpha1.ApprovalNone)

	if m := l.Mirror; m != nil {
		m.For = cmp.Or(m.For, &metav1.Duration{Duration: 5 * time.Minute})
	}

	if t := l.Latency; t != nil {
		t.Percentile = cmp.Or(t.Percentile, 95)
	}

	if d := l.Drift; d != nil {
		d.Method = cmp.Or(d.Method, v1alpha1.DriftPSI)
		d.Max = cmp.Or(d.Max, new(0.2))
	}

	for i := range l.Freeze {
		l.Freeze[i].TimeZone = cmp.Or(l.Freeze[i].TimeZone, "UTC")
	}
}

func defaultExperiment(e *v1alpha1.Experiment) {
	if e == nil {
		return
	}

	e.Metric.Direction = cmp.Or(e.Metric.Direction, v1alpha1.DirectionHigher)
	e.Metric.MinEffect = cmp.Or(e.Metric.MinEffect, new(0.01))
	e.Guardrails = cmp.Or(e.Guardrails, &v1alpha1.ExperimentGuardrails{})
	e.Guardrails.SuccessThreshold = cmp.Or(e.Guardrails.SuccessThreshold, new(0.99))
	e.Stop = cmp.Or(e.Stop, &v1alpha1.ExperimentStop{})
	e.Stop.Duration = cmp.Or(e.Stop.Duration, &metav1.Duration{Duration: week})
	e.Stop.MinSamples = cmp.Or(e.Stop.MinSamples, new(int32(1000)))
	e.Stop.Confidence = cmp.Or(e.Stop.Confidence, new(95.0))

	if t := e.Guardrails.Latency; t != nil {
		t.Percentile = cmp.Or(t.Percentile, 95)
	}
}

func defaultedProbes(p *v1alpha1.Probes) *v1alpha1.Probes {
	p = cmp.Or(p, &v1alpha1.Probes{})
	p.StartupSeconds = cmp.Or(p.StartupSeconds, new(int32(600)))

	if w := p.WarmUp; w != nil {
		w.Requests = cmp.Or(w.Requests, new(int32(10)))
		w.ContentType = cmp.Or(w.ContentType, "application/json")
	}

	return p
}

func defaultModel(m *v1alpha1.Model, settings inputv1alpha1.Settings) {
	if m == nil {
		return
	}

	m.MountPath = cmp.Or(m.MountPath, "/models")

	if r := m.Registry; r != nil {
		r.ProviderConfigReference = cmp.Or(r.ProviderConfigReference, settings.Algorithm.MLflow)
	}

	if m.OCI != nil {
		m.OCI.Delivery = cmp.Or(m.OCI.Delivery, v1alpha1.DeliverImageVolume)
	}

	if m.Cache != nil {
		m.Cache.AccessMode = cmp.Or(m.Cache.AccessMode, corev1.ReadWriteMany)
	}
}
