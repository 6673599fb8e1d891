// SPDX-License-Identifier: Apache-2.0

//go:build integration

package analysis

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	inner "github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/test/outside"
)

func TestMain(m *testing.M) { os.Exit(outside.Main(m)) }

// A server tells metrics as those of the demo server do, with Prometheus' own library.
type server struct {
	requests *client.CounterVec
	latency  client.Histogram
	inFlight client.Gauge
	queue    client.Gauge
	address  string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{
		requests: client.NewCounterVec(client.CounterOpts{Name: "algorithm_requests_total", Help: "Requests."}, []string{"code"}),
		latency: client.NewHistogram(client.HistogramOpts{
			Name: "algorithm_request_duration_seconds", Help: "How long they take.", Buckets: []float64{.01, .02, .03, .04, .05, .075, .1, .25, .5, 1},
		}),
		inFlight: client.NewGauge(client.GaugeOpts{Name: "algorithm_inflight", Help: "Requests now."}),
		queue:    client.NewGauge(client.GaugeOpts{Name: "queue_length", Help: "Requests that wait."}),
	}
	r := client.NewRegistry()
	r.MustRegister(s.requests, s.latency, s.inFlight, s.queue)
	h := httptest.NewServer(promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	t.Cleanup(h.Close)
	s.address = strings.TrimPrefix(h.URL, "http://")
	return s
}

// serve some requests a second, of which a share fails, until the test ends.
func (s *server) serve(t *testing.T, rate, failing float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(100 * time.Millisecond)
	done := make(chan struct{})
	t.Cleanup(func() { tick.Stop(); close(done) })
	s.inFlight.Set(4)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			for range int(rate / 10) {
				code := "200"
				if r.Float64() < failing {
					code = "500"
				}
				s.requests.WithLabelValues(code).Inc()
				s.latency.Observe(0.1 * r.Float64())
			}
		}
	}()
}

func clientOf(t *testing.T, p *outside.PrometheusServer) *prometheus.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.CA)
	c, err := prometheus.New(&inner.Connection{
		Prometheus: &apis.PrometheusConfig{URL: p.URL},
		Authorize:  func(*http.Request) {},
		HTTP:       &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPrometheus asks a real Prometheus that scrapes real metrics: every verdict, what is wrong with queries, other namespaces,
// and an outage.
func TestPrometheus(t *testing.T) {
	p := outside.Prometheus(t)
	good, bad, quiet, foreign := newServer(t), newServer(t), newServer(t), newServer(t)
	p.Scrape(
		outside.Target{Address: good.address, Namespace: "shop", Pod: "reco-a-1", Algorithm: "reco", Slot: "a"},
		outside.Target{Address: bad.address, Namespace: "shop", Pod: "reco-b-1", Algorithm: "reco", Slot: "b"},
		outside.Target{Address: quiet.address, Namespace: "shop", Pod: "idle-a-1", Algorithm: "idle", Slot: "a"},
		outside.Target{Address: foreign.address, Namespace: "bank", Pod: "reco-a-1", Algorithm: "reco", Slot: "a"},
	)
	good.serve(t, 500, 0.001)
	bad.serve(t, 500, 0.2)
	foreign.serve(t, 5000, 0.5)
	good.queue.Set(3)
	bad.queue.Set(math.NaN())
	foreign.queue.Set(1000)
	c := clientOf(t, p)
	query := func(name, q string) v1alpha1.Check {
		return v1alpha1.Check{Name: name, Kind: v1alpha1.CheckQuery, Query: q, Max: new(10.0)}
	}
	cr := analysisOf("watch", "reco")
	cr.Spec.ForProvider.Metrics = &v1alpha1.MetricsParameters{
		Window: &metav1.Duration{Duration: 20 * time.Second},
		Slots:  []string{"a", "b"},
		Checks: []v1alpha1.Check{
			everyCheck[0],
			{Name: "latency", Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(99.0)},
			{Name: "latency-tight", Kind: v1alpha1.CheckLatency, Percentile: 50, Max: new(20.0)},
			everyCheck[2], everyCheck[3],
			query("queue", "queue_length"),
			query("all", `sum({__name__="queue_length", namespace=~".+"} or queue_length{namespace="bank"})`),
			query("others", `queue_length{namespace="bank"}`),
			query("never", "never_told"),
			query("wrong", "sum(rate(queue_length[$window])"),
			query("several", `{__name__=~"algorithm_.*"}`),
			query("range", "queue_length[$window]"),
			query("matching", `algorithm_requests_total / on(slot) group_left algorithm_requests_total`),
			query("infinite", "1 / (queue_length * 0)"),
		},
		Scaling: &v1alpha1.ScalingParameters{Slot: "a", TargetLatencyMs: new(int32(150)), Percentile: 95},
	}
	pods := []corev1.Pod{pod("reco-a-1", ready), pod("reco-b-1", slot("b"), ready)}
	m := &remembered{}
	look := func(cr *v1alpha1.Analysis) v1alpha1.AnalysisObservation {
		t.Helper()
		a := &promq.Asker{Prometheus: c, Namespace: "shop", Algorithm: cr.Spec.ForProvider.Algorithm, Found: m.found.Discovery, Now: time.Now()}
		s := a.Ask(t.Context(), promq.QuestionOf(cr.Spec.ForProvider.Metrics))
		m.found.Discovery = a.Found
		cr.Status.AtProvider.Metrics = nil
		m.load = report(cr, m.load, seen{sample: s}, pods, time.Now())
		return cr.Status.AtProvider
	}
	got := v1alpha1.AnalysisObservation{}
	of := func(slot, name string) v1alpha1.MetricObservation {
		for _, o := range got.Metrics {
			if o.Slot == slot && o.Name == name {
				return o
			}
		}
		return v1alpha1.MetricObservation{}
	}
	verdicts := func(want map[string]v1alpha1.Verdict) string {
		for at, v := range want {
			slot, name, _ := strings.Cut(at, " ")
			if o := of(slot, name); o.Verdict != v {
				return fmt.Sprintf("%s: want %s, got %s %s", at, v, o.Verdict, o.Message)
			}
		}
		return ""
	}
	eventually := func(what string, check func() string) {
		t.Helper()
		said := ""
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
			got = look(cr)
			if said = check(); said == "" {
				return
			}
		}
		t.Fatalf("%s did not happen: %s", what, said)
	}

	// Enough of everything.
	eventually("every verdict", func() string {
		return verdicts(map[string]v1alpha1.Verdict{
			"a success": v1alpha1.VerdictPass, "b success": v1alpha1.VerdictFail,
			"a latency": v1alpha1.VerdictPass, "a latency-tight": v1alpha1.VerdictFail,
			"a rate": v1alpha1.VerdictPass, "a inflight": v1alpha1.VerdictPass,
			"a queue": v1alpha1.VerdictPass, "b queue": v1alpha1.VerdictNoData,
			"a all": v1alpha1.VerdictPass, "a others": v1alpha1.VerdictNoData,
			"a never": v1alpha1.VerdictNoData, "a infinite": v1alpha1.VerdictNoData,
			"a wrong": v1alpha1.VerdictError, "a several": v1alpha1.VerdictError, "a range": v1alpha1.VerdictError, "a matching": v1alpha1.VerdictError,
		})
	})
	for _, o := range got.Metrics {
		t.Logf("%s %s %s value %v lower %v upper %v samples %v: %s", o.Slot, o.Name, o.Verdict,
			ptr.Deref(o.Value, -1), ptr.Deref(o.Lower, -1), ptr.Deref(o.Upper, -1), ptr.Deref(o.Samples, -1), o.Message)
	}
	if got.Server != "Algorithm" || got.Scaling.Signal != v1alpha1.SignalInFlight {
		t.Errorf("The server should be recognised, and scaling follow what is in flight, got %q and %+v", got.Server, got.Scaling)
	}
	eventually("a full window", func() string {
		if n := *of("a", "success").Samples; n < 9_000 {
			return fmt.Sprint(n, " requests")
		}
		return ""
	})

	// Half of those of the other namespace fail, and there are ten times as many.
	if n := *of("a", "success").Samples; n > 11_000 {
		t.Errorf("About 500 requests a second in 20 s should be counted, and nobody else's, got %d", n)
	}
	if v := *of("a", "latency").Value; v < 92 || v > 98 {
		t.Errorf("Latencies are even up to 100 ms, so 95 %% are within 95 ms, got %g", v)
	}
	if v := *of("a", "all").Value; v != 3 {
		t.Errorf("Series of others must not be seen, got %g", v)
	}
	if m := of("a", "wrong").Message; !strings.Contains(m, "1:28: parse error: unclosed left parenthesis") {
		t.Errorf("What is wrong should be told with its place, got %q", m)
	}
	if m := of("a", "matching").Message; !strings.Contains(m, "Prometheus cannot evaluate the query: found duplicate series for the match group {…} on the right hand-side") {
		t.Errorf("What Prometheus says should be told, got %q", m)
	}

	// No traffic.
	idle := analysisOf("watch", "idle")
	idle.Spec.ForProvider.Metrics = &v1alpha1.MetricsParameters{Window: &metav1.Duration{Duration: 20 * time.Second}, Slots: []string{"a", "b"}, Checks: everyCheck[:1]}
	m.found = found{}
	if at := look(idle); at.Metrics[0].Verdict != v1alpha1.VerdictInsufficient || *at.Metrics[0].Samples != 0 ||
		at.Metrics[1].Verdict != v1alpha1.VerdictNoData || at.Metrics[1].Message != promq.NotScraped {
		t.Errorf("Without traffic there is too little to tell, and without pods nothing, got %+v", at.Metrics)
	}
	m.found = found{}

	// An outage, which changes nothing of what was learned.
	learned := *got.Scaling.PerReplica
	p.Stop()

	// A request on the way breaks in the middle. The ones after it find nobody.
	eventually("an outage", func() string {
		if c := cr.GetCondition(apis.TypeConnected); c.Reason != apis.ReasonUnreachable {
			return string(c.Reason) + " " + c.Message
		}
		return ""
	})
	if said := verdicts(map[string]v1alpha1.Verdict{"a success": v1alpha1.VerdictError, "a queue": v1alpha1.VerdictError}); said != "" {
		t.Error(said)
	}
	if got.Server != "Algorithm" || got.Scaling.Signal != v1alpha1.SignalInFlight || *got.Scaling.PerReplica != learned {
		t.Errorf("What was known should stay, got %q and %+v", got.Server, got.Scaling)
	}
	p.Start()
	eventually("everything being well again", func() string {
		if c := cr.GetCondition(apis.TypeConnected); c.Reason != apis.ReasonAnswered {
			return string(c.Reason)
		}
		return verdicts(map[string]v1alpha1.Verdict{"a success": v1alpha1.VerdictPass, "b success": v1alpha1.VerdictFail, "a queue": v1alpha1.VerdictPass})
	})
}
