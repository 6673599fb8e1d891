// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/images/demo-algorithm/load"
)

// prometheusURL is the address of the embedded cluster's Prometheus, for pods and for these tests.
const prometheusURL = "http://prometheus.monitoring.svc:9090"

// lookAt is short, so that there is an evaluation every 10 s: the embedded cluster's Prometheus scrapes every 5 s.
const lookAt = 30 * time.Second

// loaded follows the load that a query has.
func loaded(query string) func(*v1alpha1.Metrics) {
	return func(m *v1alpha1.Metrics) {
		m.Queries = []v1alpha1.MetricQuery{{Name: v1alpha1.QueryLoad, Query: query}}
	}
}

// measured enables metrics, with modifications.
func measured(modify ...func(*v1alpha1.Metrics)) func(*v1alpha1.Algorithm) {
	return func(a *v1alpha1.Algorithm) {
		m := &v1alpha1.Metrics{Window: &metav1.Duration{Duration: lookAt}}
		for _, mod := range modify {
			mod(m)
		}
		a.Spec.Metrics = m
	}
}

func scaled(s v1alpha1.Scaling) func(*v1alpha1.Algorithm) {
	return func(a *v1alpha1.Algorithm) { a.Spec.Scaling = &s }
}

func args(list ...string) func(*v1alpha1.Algorithm) {
	return func(a *v1alpha1.Algorithm) { a.Spec.Args = list }
}

// size is the desired number of replicas from the autoscaler, and the number of ready ones.
func size(ctx context.Context, ns, name string) (wanted, available int32, err error) {
	d, err := get(ctx, &appsv1.Deployment{}, ns, name+"-a")
	if err != nil {
		return 0, 0, err
	}

	return *d.Spec.Replicas, d.Status.AvailableReplicas, nil
}

// stays fails the test when the number of replicas changes within a time.
func stays(t *testing.T, ns, name string, d time.Duration, what string) {
	t.Helper()
	began := time.Now()
	before, _, err := size(t.Context(), ns, name)
	if err != nil {
		t.Fatal(err)
	}
	for time.Since(began) < d {
		now, _, err := size(t.Context(), ns, name)
		if err != nil || now != before {
			t.Fatalf("%s: %d replicas should stay, got %d after %s (%v)", what, before, now, time.Since(began).Round(time.Second), err)
		}
		time.Sleep(time.Second)
	}
	t.Logf("%s: %d replicas stayed for %s", what, before, d)
}

// verdict fails until the Analysis of an Algorithm has a verdict on a check, with words that name the remedy.
func verdict(ns, name, check string, want observev1alpha1.Verdict, words ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		o, err := get(ctx, &observev1alpha1.Analysis{}, ns, name)
		if err != nil {
			return err
		}
		for _, m := range o.Status.AtProvider.Metrics {
			if m.Name != check {
				continue
			}
			if m.Verdict != want {
				return fmt.Errorf("the verdict on %s is %s: %s", check, m.Verdict, m.Message)
			}
			for _, w := range words {
				if !strings.Contains(m.Message, w) {
					return fmt.Errorf("the message about %s lacks %q: %s", check, w, m.Message)
				}
			}

			return nil
		}

		return fmt.Errorf("the status has no metric %s", check)
	}
}

// promQL returns the single value of an expression.
func promQL(ctx context.Context, expression string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, prometheusURL+"/api/v1/query?"+url.Values{"query": {expression}}.Encode(), nil)
	if err != nil {
		return "", err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = rsp.Body.Close() }()
	var answer struct {
		Data struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(rsp.Body).Decode(&answer); err != nil {
		return "", err
	}
	if n := len(answer.Data.Result); n != 1 {
		return "", fmt.Errorf("%s has %d series", expression, n)
	}

	return fmt.Sprint(answer.Data.Result[0].Value[1]), nil
}

// TestMetricChecks has checks without a result beside one with a result.
func TestMetricChecks(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	other := namespace(t)
	create(t, algorithm(other, "reco", measured()))
	checks := []v1alpha1.MetricQuery{
		{Name: "good", Query: "sum(algorithm_inflight)", Max: new(100.0)},
		{Name: "wrong", Query: "sum(algorithm_inflight", Max: new(1.0)},
		{Name: "never", Query: "sum(no_such_metric)", Max: new(1.0)},
		{Name: "nan", Query: "sum(algorithm_inflight) / sum(algorithm_inflight)", Max: new(1.0)},
		{Name: "many", Query: "go_gc_duration_seconds", Max: new(1.0)},
		{Name: "foreign", Query: fmt.Sprintf("sum(up{namespace=%q})", other), Min: new(0.0)},
		{Name: "everybody", Query: `count(count by (namespace) (up{namespace=~".*"}))`, Min: new(1.0), Max: new(1.0)},
	}
	reco := func(checks ...v1alpha1.MetricQuery) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", measured(func(m *v1alpha1.Metrics) { m.Queries = checks }))
	}
	create(t, reco(checks...))
	// The operator rewrites Prometheus's configuration for each of the many monitors that come and go in the meantime.
	within(t, 2*timeout, "Prometheus scrapes the other namespace", func(ctx context.Context) error {
		_, err := promQL(ctx, fmt.Sprintf("sum(up{namespace=%q,algorithm=%q,slot=%q})", other, "reco", "a"))

		return err
	})

	for _, tc := range []struct {
		check, reason string
		want          observev1alpha1.Verdict
		words         []string
	}{
		{"good", "What is wrong with others does not touch it.", observev1alpha1.VerdictPass, nil},
		{"wrong", "Prometheus says where the mistake is.", observev1alpha1.VerdictError, []string{"unclosed left parenthesis", "1:"}},
		{"never", "A series that is not there is neither zero nor a failure.", observev1alpha1.VerdictNoData, []string{"series"}},
		{"nan", "0/0 is no value.", observev1alpha1.VerdictNoData, []string{"not a number"}},
		{"many", "Which of several values is meant, nobody knows.", observev1alpha1.VerdictError, []string{"several series", "sum("}},
		{"foreign", "Another namespace is not seen, however it is asked for.", observev1alpha1.VerdictNoData, []string{"series"}},
		{"everybody", "Nor is the whole cluster.", observev1alpha1.VerdictPass, nil},
	} {
		eventually(t, "the verdict on "+tc.check+": "+tc.reason, verdict(ns, "reco", tc.check, tc.want, tc.words...))
	}

	// The condition reports one after another, and all of them in the end.
	available := func(status corev1.ConditionStatus, reason xpv2.ConditionReason, words ...string) func(context.Context) error {
		return algorithmCondition(ns, "reco", v1alpha1.TypeMetricsAvailable, status, reason, words...)
	}
	eventually(t, "the wrong query is reported", available(corev1.ConditionFalse, v1alpha1.ReasonQueryFailed, "wrong: ", "unclosed left parenthesis"))
	edit(t, reco(checks[0], checks[2]))
	eventually(t, "the missing metric is reported", available(corev1.ConditionFalse, v1alpha1.ReasonNoData, "never: ", "series"))
	edit(t, reco(checks[0], checks[3]))
	eventually(t, "the missing value is reported", available(corev1.ConditionFalse, v1alpha1.ReasonNoData, "nan: ", "not a number"))
	edit(t, reco(checks[0], checks[6]))
	eventually(t, "all is known", available(corev1.ConditionTrue, v1alpha1.ReasonMeasured))
	eventually(t, "everything is healthy", algorithmCondition(ns, "reco", v1alpha1.TypeWithinTargets, corev1.ConditionTrue, v1alpha1.ReasonTargetsMet))
	edit(t, reco(v1alpha1.MetricQuery{Name: "missed", Query: "sum(algorithm_inflight)", Min: new(7.0)}))
	eventually(t, "a target that is missed is reported", algorithmCondition(ns, "reco", v1alpha1.TypeWithinTargets, corev1.ConditionFalse,
		v1alpha1.ReasonTargetMissed, "missed: 0, must be at least 7"))
}

// TestScalesByQuery follows a query of the spec, which needs its own recording rule.
func TestScalesByQuery(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	// Six clients that wait for slow responses keep six requests in progress, at almost no cost.
	create(t, algorithm(ns, "reco", routed(host), draining(drainSeconds), measured(loaded("sum(algorithm_inflight) * 10")), args("--latency-ms=4000"), scaled(v1alpha1.Scaling{
		MinReplicas: 1, MaxReplicas: 4, Signal: "Query", PerReplica: new(20.0), ScaleDownAfterSeconds: new(int32(0)),
	})))
	eventually(t, "the Gateway serves it", answers(host, "/healthz", http.StatusOK))
	c := callOutside(t, load.Options{URL: gateway + "/predict", Host: host, Concurrency: 6, Timeout: 20 * time.Second})
	began := time.Now()
	series := fmt.Sprintf("capstan:custom{namespace=%q,algorithm=%q,slot=%q}", ns, "reco", "a")
	within(t, 2*timeout, "the load is recorded", func(ctx context.Context) error {
		v, err := promQL(ctx, series)
		if err == nil && v != "60" {
			err = fmt.Errorf("%s is %s", series, v)
		}

		return err
	})
	t.Logf("recorded %s after the load began", time.Since(began).Round(time.Second))
	within(t, 2*timeout, "60 at 20 a replica are 3 replicas", func(ctx context.Context) error {
		wanted, available, err := size(ctx, ns, "reco")
		if err == nil && (wanted != 3 || available != 3) {
			err = fmt.Errorf("%d replicas are wanted, %d serve", wanted, available)
		}

		return err
	})
	t.Logf("scaled %s after the load began", time.Since(began).Round(time.Second))
	a, err := get(t.Context(), &v1alpha1.Algorithm{}, ns, "reco")
	if err != nil || a.Status.Scaling == nil || a.Status.Scaling.Signal != "Query" || *a.Status.Scaling.PerReplica != 20 {
		t.Errorf("status.scaling should have what the autoscaler follows: %+v (%v)", a.Status.Scaling, err)
	}
	eventually(t, "all is known", algorithmCondition(ns, "reco", v1alpha1.TypeMetricsAvailable, corev1.ConditionTrue, v1alpha1.ReasonMeasured))
	if r := c(); r.Lost() != 0 {
		t.Errorf("%d of %d requests were lost: %v", r.Lost(), r.Sent, r.Failed)
	}

	// An invalid query changes nothing, and the condition reports it.
	wanted, _, err := size(t.Context(), ns, "reco")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d replicas after the load", wanted)
	edit(t, algorithm(ns, "reco", routed(host), draining(drainSeconds), measured(loaded("sum(algorithm_inflight) *")), args("--latency-ms=4000"), scaled(v1alpha1.Scaling{
		MinReplicas: 1, MaxReplicas: 4, Signal: "Query", PerReplica: new(20.0), ScaleDownAfterSeconds: new(int32(0)),
	})))
	eventually(t, "the wrong query is reported", algorithmCondition(ns, "reco", v1alpha1.TypeMetricsAvailable, corev1.ConditionFalse,
		v1alpha1.ReasonQueryFailed, "spec.scaling", "unexpected end of input"))
}

// TestSeriesGone removes the metrics of running pods by a wrong edit: the number of replicas stays.
func TestSeriesGone(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	reco := func(path string, calm int32) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", sized(3), measured(func(m *v1alpha1.Metrics) { m.Path = path }), scaled(v1alpha1.Scaling{
			MinReplicas: 1, MaxReplicas: 3, Signal: "InFlight", PerReplica: new(2.0), ScaleDownAfterSeconds: new(calm),
		}))
	}
	available := func(status corev1.ConditionStatus, reason xpv2.ConditionReason, words ...string) func(context.Context) error {
		return algorithmCondition(ns, "reco", v1alpha1.TypeMetricsAvailable, status, reason, words...)
	}
	// It would shrink, but slowly.
	create(t, reco("/metrics", 3600))
	within(t, 2*timeout, "all is known", available(corev1.ConditionTrue, v1alpha1.ReasonMeasured))
	edit(t, reco("/nothing", 3600))
	within(t, 2*timeout, "the status reports that the series are gone", available(corev1.ConditionFalse, v1alpha1.ReasonNoData, "spec.scaling", "spec.metrics.port and path"))
	edit(t, reco("/nothing", 0))
	time.Sleep(5 * time.Second)
	stays(t, ns, "reco", 45*time.Second, "without series, and no time to wait")
	edit(t, reco("/metrics", 0))
	within(t, 2*timeout, "with them it shrinks", func(ctx context.Context) error {
		wanted, _, err := size(ctx, ns, "reco")
		if err == nil && wanted == 3 {
			err = errors.New("there are still 3 replicas")
		}

		return err
	})
	within(t, timeout, "all is known again", available(corev1.ConditionTrue, v1alpha1.ReasonMeasured))
}
