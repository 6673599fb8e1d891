// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/test/outside"
)

// precious is the value that other tenants must not see.
const precious = "4710"

// toldByShop is exported by the pods of shop.
const toldByShop = `# TYPE queue_length gauge
queue_length ` + precious + `
# TYPE algorithm_requests_total counter
algorithm_requests_total{code="200"} ` + precious + `
# TYPE algorithm_inflight gauge
algorithm_inflight ` + precious + `
# TYPE x_seconds histogram
x_seconds_bucket{le="1"} ` + precious + `
x_seconds_bucket{le="+Inf"} ` + precious + `
`

// pages serves a page of metrics.
func pages(t *testing.T, text string) string {
	t.Helper()

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)

	return strings.TrimPrefix(s.URL, "http://")
}

// metrics connects the platform's config with a real Prometheus, which scrapes the pods of Algorithm reco of shop.
func (b *bench) metrics() (*outside.PrometheusServer, *outside.FaultProxy) {
	b.t.Helper()

	p := outside.Prometheus(b.t)
	proxy := outside.Proxy(b.t, p.URL, p.CA)
	p.Scrape(outside.Target{Address: pages(b.t, toldByShop), Namespace: "shop", Pod: "reco-a-1", Algorithm: "reco", Slot: "a"})
	b.apply(&v1alpha1.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		Spec: v1alpha1.ClusterProviderConfigSpec{
			Prometheus: &v1alpha1.PrometheusConfig{URL: proxy.URL, CABundle: string(proxy.CA)},
		},
	})

	return p, proxy
}

// series makes shop and bank share a Prometheus, once for all attacks.
func (s *stage) series(t *testing.T) {
	t.Helper()

	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "prometheus"}}
	if s.Get(t.Context(), client.ObjectKeyFromObject(pc), pc) == nil {
		return
	}

	// It lives as long as the stage, not only for one attack.
	was := s.t
	s.t = s.whole
	s.metrics()
	s.t = was

	mine := analysis("shop", "own", "reco")
	s.apply(mine)
	s.eventually(time.Minute, "shop seeing its own series", func() string {
		s.get(mine)

		return map[bool]string{true: "not yet"}[!strings.Contains(status(mine), `"value":`+precious)]
	})
}

func status(a *observev1alpha1.Analysis) string {
	b, err := json.Marshal(a.Status)
	if err != nil {
		return err.Error()
	}

	return string(b)
}

// seesNothing checks that no status has anything of other tenants.
func (s *stage) seesNothing(t *testing.T, what string, a *observev1alpha1.Analysis) {
	t.Helper()
	s.apply(a)
	s.eventually(time.Minute, what+" being asked", func() string {
		s.get(a)

		if len(a.Status.AtProvider.Metrics) == 0 {
			return "not yet"
		}

		return ""
	})

	if got := status(a); strings.Contains(got, precious) {
		t.Errorf("%s: want nothing of others, got %s", what, got)
	}

	for _, m := range a.Status.AtProvider.Metrics {
		if m.Verdict == observev1alpha1.VerdictPass || m.Verdict == observev1alpha1.VerdictFail {
			t.Errorf("%s: want no verdict on what is not seen, got %+v", what, m)
		}
	}

	expressions := a.Status.AtProvider.Latency
	if sc := a.Status.AtProvider.Scaling; sc != nil {
		expressions = slices.Concat(expressions, sc.Expressions)
	}
	for _, e := range expressions {
		if n := strings.Count(e.Expression, `namespace="bank"`); n == 0 && strings.Contains(e.Expression, "{") {
			t.Errorf("%s: want an expression about bank, got %s", what, e.Expression)
		}
	}

	if err := s.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// greedy queries request the series of other tenants in every way of PromQL.
func greedy() []string {
	return []string{
		`queue_length`,
		`queue_length{namespace="shop"}`,
		`{__name__=~"queue.*|x_seconds_bucket", namespace=~".+", algorithm=~".*", slot=~".*"}`,
		`{"queue_length", "namespace"="shop"}`,
		`label_replace(queue_length{namespace="shop"}, "namespace", "bank", "", "")`,
		`max_over_time(queue_length[5m:1s]) or x_seconds_bucket offset 1s`,
		`topk(scalar(queue_length), queue_length) or on() vector(scalar(queue_length{namespace="shop"}))`,
		`queue_length @ end() # }`,
		`increase(x_seconds_bucket{namespace!="bank"}[$window])`,
		`sum by (le) (x_seconds_bucket)`,
	}
}

// othersSeries are requested by every query.
func othersSeries(set func(*observev1alpha1.MetricsParameters, string)) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.series(t)

		for _, q := range greedy() {
			a := analysis("bank", s.name(), "reco")
			m := a.Spec.ForProvider.Metrics
			m.Queries = &observev1alpha1.Queries{}
			least, target := 0.5, int32(10)
			m.RecordLatency = new(int32(95))
			m.Checks = append(m.Checks,
				observev1alpha1.Check{Name: "success", Kind: observev1alpha1.CheckSuccessRatio, Min: &least},
				observev1alpha1.Check{Name: "latency", Kind: observev1alpha1.CheckLatency, Min: &least},
				observev1alpha1.Check{Name: "inflight", Kind: observev1alpha1.CheckInFlight})
			m.Scaling = &observev1alpha1.ScalingParameters{Slot: "a", TargetLatencyMs: &target}
			set(m, q)
			s.seesNothing(t, q, a)
		}
	}
}

// othersTrial is an attack by bank, whose live slot has no series: a check that is tried on it with a query for series of others must
// not count as measured, because that tells that those series exist.
func othersTrial(t *testing.T, s *stage) {
	t.Helper()
	s.series(t)

	a := analysis("bank", s.name(), "reco")
	most := 1e6
	for i, q := range greedy() {
		a.Spec.ForProvider.Metrics.Trial = append(a.Spec.ForProvider.Metrics.Trial,
			observev1alpha1.Check{Name: fmt.Sprint("query-", i), Kind: observev1alpha1.CheckQuery, Query: q, Max: &most})
	}
	s.apply(a)
	s.eventually(2*time.Minute, "the checks being tried", func() string {
		s.get(a)

		return map[bool]string{true: "not yet"}[len(a.Status.AtProvider.Trial) == 0]
	})

	if got := status(a); strings.Contains(got, precious) {
		t.Errorf("want nothing of others, got %s", got)
	}
	for i, o := range a.Status.AtProvider.Trial {
		if o.Verdict == observev1alpha1.VerdictPass {
			t.Errorf("%s: want no series seen, got it measured", greedy()[i])
		}
	}
}

// othersCanary is an attack by bank, which has no candidate: with every query, as a check and as the metric of an
// experiment, and with names of missing slots.
func othersCanary(t *testing.T, s *stage) {
	t.Helper()
	s.series(t)

	relative, most := observev1alpha1.RelativeToBaseline, 1.0
	all := make([]*observev1alpha1.Analysis, 0, 3+len(greedy()))

	try := func(slot, baseline, counted string, checks ...observev1alpha1.Check) {
		a := analysis("bank", s.name(), "reco")
		a.Spec.ForProvider.Metrics.Canary = &observev1alpha1.CanaryParameters{
			Epoch: 1, Slot: slot, Baseline: baseline, Settle: &metav1.Duration{}, MinSamples: 1,
			Checks: append(checks, observev1alpha1.Check{Name: "success", Kind: observev1alpha1.CheckSuccessRatio, RelativeTo: relative}),
			Experiment: &observev1alpha1.ExperimentParameters{
				Kind: observev1alpha1.ExperimentShare, Events: counted, Of: counted, MinEffect: 0.5, MinSamples: 1, Confidence: 80,
			},
		}
		s.apply(a)

		all = append(all, a)
	}

	for _, slots := range [][2]string{{"a", "b"}, {`a"} or queue_length{namespace="shop`, ".*"}, {".*", "a"}} {
		checks := make([]observev1alpha1.Check, 0, len(greedy())+3)
		for i, q := range greedy() {
			checks = append(checks, observev1alpha1.Check{Name: fmt.Sprint("query-", i), Kind: observev1alpha1.CheckQuery, Query: q, Max: &most})
		}

		checks = append(checks,
			observev1alpha1.Check{Name: "latency", Kind: observev1alpha1.CheckLatency, Max: &most, RelativeTo: relative},
			observev1alpha1.Check{Name: "drift", Kind: observev1alpha1.CheckDrift, Query: "x_seconds_bucket", Max: &most, RelativeTo: relative},
			observev1alpha1.Check{
				Name: "past", Kind: observev1alpha1.CheckDrift, Query: `x_seconds_bucket{namespace="shop"}`, Max: &most,
				Reference: &metav1.Duration{Duration: time.Minute},
			})

		try(slots[0], slots[1], `sum(queue_length{namespace="shop"})`, checks...)
	}

	for _, q := range greedy() {
		try("a", "b", q)
	}

	for _, a := range all {
		s.eventually(2*time.Minute, "a canary being looked at", func() string {
			s.get(a)

			c := a.Status.AtProvider.Canary

			return map[bool]string{true: "not yet"}[c == nil || len(c.Checks) == 0 || c.Experiment == nil]
		})

		if got := status(a); strings.Contains(got, precious) {
			t.Errorf("want nothing of others, got %s", got)
		}

		c := a.Status.AtProvider.Canary

		for _, c := range c.Checks {
			if strings.ContainsAny(c.Verdicts, "PF") || c.Value != nil || c.Baseline != nil {
				t.Errorf("want no verdict on what is not seen, got %+v", c)
			}
		}

		if e := c.Experiment; e.Result != observev1alpha1.ExperimentUndecided || e.Canary != nil || e.Baseline != nil || e.Message == "" || strings.Contains(e.Message, "series where") {
			t.Errorf("want nothing counted of what is not seen, got %+v", e)
		}

		if err := s.Delete(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
}

func othersAlgorithm(t *testing.T, s *stage) {
	t.Helper()
	s.series(t)

	for _, name := range []string{`reco`, `x"} or queue_length{namespace="shop`, `.*`, `reco",namespace="shop`} {
		s.seesNothing(t, name, analysis("bank", s.name(), name))
	}
}

func othersSlot(t *testing.T, s *stage) {
	t.Helper()
	s.series(t)

	for _, slots := range [][]string{{`a"} or queue_length{namespace="shop`}, {`.*`}, {`a`, `b"} or up{a="`}, {`.*`, `|a`}} {
		a := analysis("bank", s.name(), "reco")
		a.Spec.ForProvider.Metrics.Slots = slots
		s.seesNothing(t, fmt.Sprint(slots), a)
	}
}

// othersFingerprint of a Secret that bank does not have.
func othersFingerprint(t *testing.T, s *stage) {
	t.Helper()

	a := analysis("bank", s.name(), "reco")
	a.Spec.ForProvider.Metrics, a.Spec.ForProvider.Secrets = nil, []string{"precious", "own"}
	s.apply(a)
	s.eventually(30*time.Second, "looking at Secrets", func() string {
		s.get(a)

		return map[bool]string{true: "not yet"}[len(a.Status.AtProvider.Secrets) == 0]
	})

	if got := a.Status.AtProvider.Secrets; len(got) != 1 || got[0].Name != "own" {
		t.Errorf("want only what bank has, got %v", got)
	}

	for _, name := range []string{"shop/precious", "../shop/precious", "precious\n", "", ".."} {
		b := analysis("bank", s.name(), "reco")
		b.Spec.ForProvider.Metrics, b.Spec.ForProvider.Secrets = nil, []string{name}
		s.refused(t, name, b)
	}
}

// podOf an Algorithm, with a status as a kubelet would write it.
func (b *bench) podOf(namespace, name string, st corev1.PodStatus) *corev1.Pod {
	b.t.Helper()

	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			observev1alpha1.LabelAlgorithm: "reco", observev1alpha1.LabelSlot: "a",
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "algorithm", Image: "example.org/reco:1"}}},
	}
	b.apply(p)
	p.Status = st

	if err := b.Status().Update(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}

	return p
}

// TestAnalysis follows one Analysis with the provider as a process: what it sees of
// Secrets, of pods while Prometheus is away, and of metrics.
func TestAnalysis(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	prometheus, _ := b.metrics()
	b.start("--poll-interval=10m")

	b.apply(&corev1.Secret{ObjectMeta: meta("shop", "license"), StringData: map[string]string{"key": "one"}})
	b.podOf("shop", "reco-a-1", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}})

	a := analysis("shop", "reco", "reco")
	a.Spec.ForProvider.Secrets = []string{"license", "late"}
	b.apply(a)

	see := func(within time.Duration, what string, check func(observev1alpha1.AnalysisObservation) bool) time.Duration {
		t.Helper()

		began := time.Now()
		b.eventually(within, what, func() string {
			b.get(a)

			return map[bool]string{true: status(a)}[!check(a.Status.AtProvider)]
		})

		return time.Since(began)
	}
	fingerprint := func(name string) string {
		for _, s := range a.Status.AtProvider.Secrets {
			if s.Name == name {
				return s.Fingerprint
			}
		}

		return ""
	}

	see(30*time.Second, "a value and a fingerprint", func(o observev1alpha1.AnalysisObservation) bool {
		return len(o.Metrics) == 2 && o.Metrics[0].Verdict == observev1alpha1.VerdictPass && *o.Metrics[0].Value == 4710 &&
			o.Server == "Algorithm" && fingerprint("license") != "" && fingerprint("late") == ""
	})
	b.connected(10*time.Second, a, v1alpha1.ReasonAnswered)

	// A Secret changes, another one is made.
	was := fingerprint("license")
	s := &corev1.Secret{ObjectMeta: meta("shop", "license")}
	b.get(s)
	s.Data["key"] = []byte("two")

	if err := b.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}

	b.apply(&corev1.Secret{ObjectMeta: meta("shop", "late"), StringData: map[string]string{"key": "one"}})

	took := see(20*time.Second, "both being told", func(observev1alpha1.AnalysisObservation) bool {
		return fingerprint("license") != was && fingerprint("license") != "" && fingerprint("late") != ""
	})
	t.Logf("a changed Secret is told after %s", took.Round(100*time.Millisecond))

	// Prometheus goes, and pods become ill while it is away.
	prometheus.Stop()
	b.eventually(30*time.Second, "telling that it does not answer", func() string {
		b.get(a)

		return map[bool]string{true: "not yet"}[a.GetCondition(v1alpha1.TypeConnected).Status != corev1.ConditionFalse]
	})

	if c := a.GetCondition(xpv2.TypeSynced); c.Status != corev1.ConditionTrue {
		t.Errorf("Synced: got %+v", c)
	}

	for i := range 3 {
		name := fmt.Sprint("ill-", i)
		p := b.podOf("shop", name, corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "algorithm", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName"}},
		}}})

		took := see(15*time.Second, "a finding", func(o observev1alpha1.AnalysisObservation) bool { return len(o.Findings) == 1 })
		t.Logf("without Prometheus a finding is told after %s", took.Round(100*time.Millisecond))

		if err := b.Delete(t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}

		see(15*time.Second, "no finding", func(o observev1alpha1.AnalysisObservation) bool { return len(o.Findings) == 0 })
	}

	if got := a.Status.AtProvider; got.Metrics[0].Verdict != observev1alpha1.VerdictError || got.Server != "Algorithm" {
		t.Errorf("Without Prometheus verdicts are errors, and what was known stays, got %s", status(a))
	}

	prometheus.Start()
	b.connected(40*time.Second, a, v1alpha1.ReasonAnswered)
	see(30*time.Second, "the value again", func(o observev1alpha1.AnalysisObservation) bool {
		return o.Metrics[0].Verdict == observev1alpha1.VerdictPass
	})
}

// TestAnalysesAreQuiet shows what Analyses cost while nothing happens.
func TestAnalysesAreQuiet(t *testing.T) {
	n, idle := scale(100), lasting(time.Minute)
	b := newBench(t)
	_, proxy := b.metrics()
	p := b.start("--poll-interval=10m")

	all := make([]*observev1alpha1.Analysis, n)
	for i := range n {
		name := fmt.Sprintf("reco-%04d", i)
		all[i] = analysis("shop", name, "reco")
		all[i].Spec.ForProvider.Metrics.Interval = &metav1.Duration{Duration: 30 * time.Second}
		all[i].Spec.ForProvider.Metrics.Checks = all[i].Spec.ForProvider.Metrics.Checks[1:]
		all[i].Spec.ForProvider.Secrets = []string{name}
	}

	each(n, func(i int) {
		b.apply(&corev1.Secret{ObjectMeta: meta("shop", all[i].GetName()), StringData: map[string]string{"key": "one"}}, all[i])
	})
	b.eventually(2*time.Minute, "all of them telling what they see", func() string {
		for _, a := range all {
			b.get(a)

			if at := a.Status.AtProvider; len(at.Metrics) != 1 || at.Server == "" || len(at.Secrets) != 1 {
				return status(a)
			}
		}

		return ""
	})

	// The window fills, and what is seen in it is told for the last time.
	time.Sleep(time.Minute)
	proxy.Reset()

	before := b.writes()
	cpu, _ := p.usage(t)

	time.Sleep(idle)

	after, memory := p.usage(t)
	t.Logf("%d idle Analyses for %s: %.0f queries of Prometheus each in an hour, CPU %s, %d MiB resident",
		n, idle, float64(proxy.Count())/idle.Hours()/float64(n), (after - cpu).Round(10*time.Millisecond), memory>>20)

	if d := more(before, b.writes()); len(d) != 0 {
		t.Errorf("Nothing happened, and yet there was written: %v", d)
	}

	if most := int(idle/(30*time.Second)+1) * n; proxy.Count() > most {
		t.Errorf("want one query each half minute, at most %d, got %d", most, proxy.Count())
	}
}

// TestForeignSecrets shows that Secrets that nobody names cost nothing.
func TestForeignSecrets(t *testing.T) {
	t.Parallel()

	n := scale(1000)
	b := newBench(t)
	p := b.start()

	a := analysis("shop", "reco", "reco")
	a.Spec.ForProvider.Metrics, a.Spec.ForProvider.Secrets = nil, []string{"license"}
	b.apply(&corev1.Secret{ObjectMeta: meta("shop", "license"), StringData: map[string]string{"key": "one"}}, a)
	b.eventually(30*time.Second, "a fingerprint", func() string {
		b.get(a)

		return map[bool]string{true: "not yet"}[len(a.Status.AtProvider.Secrets) == 0]
	})
	time.Sleep(5 * time.Second)

	cpu, before := p.usage(t)

	each(n, func(i int) {
		b.apply(&corev1.Secret{
			ObjectMeta: meta("bank", fmt.Sprintf("foreign-%05d", i)), Data: map[string][]byte{"data": make([]byte, 4096)},
		})
	})
	time.Sleep(5 * time.Second)

	used, after := p.usage(t)
	t.Logf("%d foreign Secrets of 4 KiB: memory %.1f MiB, then %.1f MiB, CPU %s", n, float64(before)/(1<<20), float64(after)/(1<<20), (used - cpu).Round(10*time.Millisecond))

	if after > before+4<<20 {
		t.Errorf("Secrets of others should not be held: memory was %d MiB, is %d MiB", before>>20, after>>20)
	}
}
