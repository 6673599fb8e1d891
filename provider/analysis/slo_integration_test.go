// SPDX-License-Identifier: Apache-2.0

//go:build integration

package analysis

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	inner "github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/slo"
	"github.com/capstan-dev/capstan/test/outside"
)

// TestSLOWithPrometheus accounts with what a real Prometheus records of two slots: the shares of requests that failed and that
// were slow, and the same by the expressions that alerts follow, for the metrics of a known server and for queries of one's own.
func TestSLOWithPrometheus(t *testing.T) {
	p := outside.Prometheus(t)
	live, idle, foreign := newServer(t), newServer(t), newServer(t)
	p.Scrape(
		outside.Target{Address: live.address, Namespace: "shop", Pod: "reco-a-1", Algorithm: "reco", Slot: "a"},
		outside.Target{Address: idle.address, Namespace: "shop", Pod: "reco-b-1", Algorithm: "reco", Slot: "b"},
		outside.Target{Address: foreign.address, Namespace: "bank", Pod: "reco-a-1", Algorithm: "reco", Slot: "a"},
	)
	// Latencies are even up to 100 ms.
	live.serve(t, 200, 0.01)
	idle.serve(t, 200, 0.03)
	foreign.serve(t, 1000, 0.5)
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
	near := func(what string, want, got float64) string {
		if math.Abs(got-want) > 0.15*math.Abs(want) {
			return fmt.Sprintf("%s: want about %g, got %g. ", what, want, got)
		}
		return ""
	}
	for name, queries := range map[string]*v1alpha1.Queries{
		"Recorded": nil,
		"Own": {
			Requests: "increase(algorithm_requests_total[$window])",
			Failures: `increase(algorithm_requests_total{code="500"}[$window])`,
			Latency:  "increase(algorithm_request_duration_seconds_bucket[$window])",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := v1alpha1.MetricsParameters{
				Window: &metav1.Duration{Duration: 30 * time.Second}, Slots: []string{"a"}, Queries: queries,
				// 80 ms lie between the buckets of 75 and 100 ms.
				SLO: &v1alpha1.SLOParameters{Availability: 90, LatencyMs: new(int32(80)), Window: &metav1.Duration{Duration: 24 * time.Hour}},
			}
			said, got := "", &v1alpha1.SLOObservation{}
			for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Second) {
				a := &promq.Asker{Prometheus: c, Namespace: "shop", Algorithm: "reco", Now: time.Now()}
				got = slo.Report(nil, m.SLO, nil, slo.Account(t.Context(), a, &m, slo.Accounts{}))
				said = fmt.Sprintf("%+v", *got)
				if got.Verdict != v1alpha1.VerdictFail || *got.Samples < 10_000 {
					continue
				}

				// 2 % fail, and 20 % are slow: more than twice the 10 % that may.
				all := []string{
					near("failed", 2, *got.Failed), near("slow", 20, *got.Slow), near("burn rate", 2.2, *got.BurnRate1h),
					near("burn rate", 2.2, *got.BurnRate6h), near("budget", -120, float64(*got.BudgetRemainingPercent)),
				}
				if got.Message == "" {
					all = append(all, "A day is more than Prometheus knows. ")
				}

				// Rates of what alerts follow: 400 requests a second, 22 % of them bad.
				for i, want := range []float64{400, 88} {
					if len(got.Expressions) != 2 {
						all = append(all, "There should be expressions. ")
						break
					}
					v, err := c.QueryAt(t.Context(), prometheus.Pods{Namespace: "shop", Algorithm: "reco", AnySlot: true}, got.Expressions[i].Expression, time.Time{})
					if err != nil {
						t.Fatalf("%s: %v", got.Expressions[i].Expression, err)
					}
					r := promq.Single(v, nil)
					all = append(all, r.Message, near(got.Expressions[i].Series, want, r.Value))
				}
				if said = strings.Join(all, ""); said == "" {
					break
				}
			}
			if said != "" {
				t.Fatal(said)
			}
			t.Logf("availability %g failed %g slow %g budget %d burn %g %g samples %d: %s", *got.Availability, *got.Failed, *got.Slow,
				*got.BudgetRemainingPercent, *got.BurnRate1h, *got.BurnRate6h, *got.Samples, got.Message)
		})
	}
}
