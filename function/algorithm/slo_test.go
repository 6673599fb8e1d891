// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
)

const (
	objective = "{image: x:1, objectives: {successRatio: 0.999}, slo: {}}"
	tolerant  = "{image: x:1, objectives: {successRatio: 0.999}, slo: {freezeRolloutsAtPercent: -1}}"
	spendable = "{image: x:1, objectives: {successRatio: 0.999}, slo: {freezeRolloutsAtPercent: 0}}"
)

// spentTo is what the Analysis tells of a budget of which so much is left.
func spentTo(left int32) observev1alpha1.AnalysisObservation {
	o := &observev1alpha1.SLOObservation{
		Verdict: observev1alpha1.VerdictPass, Availability: new(99.93), BudgetRemainingPercent: &left,
		BurnRate1h: new(0.5), BurnRate6h: new(0.7), Samples: new(int64(7_200_000)),
		Expressions: []observev1alpha1.SLOExpression{
			{Series: "capstan:slo_requests_per_second", Expression: "requests"}, {Series: "capstan:slo_bad_per_second", Expression: "bad"},
		},
	}
	if left <= 0 {
		o.Verdict = observev1alpha1.VerdictFail
	}
	return observev1alpha1.AnalysisObservation{SLO: o}
}

// unspent is what the Analysis tells when there is no budget to tell of.
func unspent(v observev1alpha1.Verdict) observev1alpha1.AnalysisObservation {
	return observev1alpha1.AnalysisObservation{SLO: &observev1alpha1.SLOObservation{Verdict: v, Message: "why"}}
}

func TestWithinSLO(t *testing.T) {
	told := func(o observev1alpha1.AnalysisObservation) func(*world) { return func(w *world) { w.measure(o) } }
	cases := map[string]struct {
		reason string
		spec   string
		do     func(*world)
		status string
		why    xpv2.ConditionReason
		words  string
		frozen bool
	}{
		"None":      {"nobody asked", "{image: x:1, metrics: {}}", nil, "", "", "", false},
		"Measuring": {"Prometheus has not been queried yet", objective, nil, "Unknown", v1alpha1.ReasonMeasuring, "", false},
		"Left":      {"more is left than rollouts must leave", objective, told(spentTo(11)), "True", v1alpha1.ReasonBudgetLeft, "status.slo", false},
		"Low":       {"what is left is for what callers do, not for rollouts", objective, told(spentTo(10)), "True", v1alpha1.ReasonBudgetLow, "10 % of the error budget", true},
		"LowNone":   {"rollouts are not to be held", tolerant, told(spentTo(10)), "True", v1alpha1.ReasonBudgetLeft, "", false},
		"LowAllowed": {
			"rollouts may use all of it", spendable, told(spentTo(1)), "True", v1alpha1.ReasonBudgetLeft, "", false,
		},
		"Exhausted": {
			"nothing is left", objective, told(spentTo(-3)), "False", v1alpha1.ReasonBudgetExhausted,
			"availability 99.93 % over 720h, must be at least 99.9 %; rollouts hold until more than 10 % of it is left", true,
		},
		"ExhaustedNone": {
			"nothing is left, and nobody cares", tolerant, told(spentTo(0)), "False", v1alpha1.ReasonBudgetExhausted, "must be at least 99.9 %", false,
		},
		"ExhaustedAllowed": {"the last percent is gone", spendable, told(spentTo(0)), "False", v1alpha1.ReasonBudgetExhausted, "more than 0 %", true},
		"Few":              {"too few requests have no budget", objective, told(unspent(observev1alpha1.VerdictInsufficient)), "Unknown", v1alpha1.ReasonTooLittleData, "why", false},
		"NoData":           {"nobody knows", objective, told(unspent(observev1alpha1.VerdictNoData)), "Unknown", v1alpha1.ReasonNoData, "why", false},
		"Error":            {"nobody can say", objective, told(unspent(observev1alpha1.VerdictError)), "Unknown", v1alpha1.ReasonQueryFailed, "why", false},
		"NoProvider": {
			"nobody asks", objective, func(w *world) { withKind(w, compose.Unavailable); delete(w.request.Observed, names.Analysis) },
			"Unknown", v1alpha1.ReasonProviderMissing, "provider-capstan", false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, tc.spec)
			if tc.do != nil {
				tc.do(w)
			}
			c := condition(w.plan(), v1alpha1.TypeWithinSLO)
			if string(c.Status) != tc.status || c.Reason != tc.why || !strings.Contains(c.Message, tc.words) {
				t.Errorf("%s: want %s %s with %q, got %s %s: %s", tc.reason, tc.status, tc.why, tc.words, c.Status, c.Reason, c.Message)
			}
			s, err := gather(w.request)
			if err != nil {
				t.Fatal(err)
			}
			if message := s.rollout.BudgetExhausted; (message != "") != tc.frozen {
				t.Errorf("%s: want frozen %t, got %q", tc.reason, tc.frozen, message)
			}
		})
	}
}

// TestSLOStatus shows what becomes of an objective: metrics, what the Analysis is asked for, the status, and no revision.
func TestSLOStatus(t *testing.T) {
	w := serving(t, "{image: x:1}")
	before := compose.Text(object(t, w.plan(), names.Deployment(names.SlotA)), "metadata", "annotations", names.AnnotationRevision)
	w.edit("{image: x:1, objectives: {successRatio: 0.9995}, slo: {failedAfterMs: 250, window: 168h}}")
	w.compose(w.plan())
	asked := compose.Map(object(t, w.plan(), names.Analysis), "spec", "forProvider", "metrics", "slo")
	if diff := cmp.Diff(map[string]any{"availability": 99.95, "latencyMs": float64(250), "window": "168h0m0s"}, asked); diff != "" {
		t.Errorf("The Analysis should account for the objective: -want, +got:\n%s", diff)
	}
	if after := compose.Text(object(t, w.plan(), names.Deployment(names.SlotA)), "metadata", "annotations", names.AnnotationRevision); after != before {
		t.Errorf("An objective is no part of a revision: want %s, got %s", before, after)
	}
	w.measure(spentTo(42))
	p := w.plan()
	got := p.Status.(v1alpha1.AlgorithmStatus).SLO
	want := &v1alpha1.SLOStatus{Verdict: "Pass", Availability: new(99.93), BudgetRemainingPercent: new(int32(42)), BurnRate1h: new(0.5), BurnRate6h: new(0.7)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status.slo: -want, +got:\n%s", diff)
	}

	// A spec that cannot be carried out leaves it as it is.
	w.told(p)
	w.edit("{image: x:1, objectives: {successRatio: 1}, slo: {}}")
	p = w.plan()
	if c := condition(p, v1alpha1.TypeWithinSLO); c.Reason != v1alpha1.ReasonBudgetLeft {
		t.Errorf("What was told should be told again, got %+v", c)
	}
	if got := compose.Number(p.Status.(map[string]any), 0, "slo", "budgetRemainingPercent"); got != 42 {
		t.Errorf("What was told should be told again, got %v", p.Status)
	}
}

func TestSLORules(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		alerts []string
	}{
		"Month": {"A month has all three.", objective, []string{
			"AlgorithmErrorBudgetBurnsFast", "AlgorithmErrorBudgetBurns", "AlgorithmErrorBudgetBurnsSlowly",
		}},
		"Day":  {"Three days are no part of one.", "{image: x:1, objectives: {successRatio: 0.99}, slo: {window: 24h}}", []string{"AlgorithmErrorBudgetBurnsFast", "AlgorithmErrorBudgetBurns"}},
		"Hour": {"An hour is the least.", "{image: x:1, objectives: {successRatio: 0.99}, slo: {window: 1h}}", []string{"AlgorithmErrorBudgetBurnsFast"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, tc.spec)
			if o := object(t, w.plan(), names.Rules); o != nil {
				t.Errorf("Before anybody knows what to record there is nothing to record, got %v", o)
			}
			w.measure(spentTo(50))
			var records, alerts []string
			groups := compose.List(object(t, w.plan(), names.Rules), "spec", "groups")
			for _, r := range compose.List(groups[0].(map[string]any), "rules") {
				rule := r.(map[string]any)
				if a := compose.Text(rule, "alert"); a != "" {
					alerts = append(alerts, a)
				} else {
					records = append(records, compose.Text(rule, "record"))
				}
				labels := compose.Map(rule, "labels")
				if labels["namespace"] != "shop" || labels["algorithm"] != "reco" {
					t.Errorf("Every series tells whose it is, got %v", rule)
				}
			}
			if diff := cmp.Diff(tc.alerts, alerts); diff != "" {
				t.Errorf("\n%s\nalerts: -want, +got:\n%s", tc.reason, diff)
			}

			// Rules of a group are evaluated in their order.
			if diff := cmp.Diff([]string{"capstan:slo_requests_per_second", "capstan:slo_bad_per_second", "capstan:slo_objective"}, records); diff != "" {
				t.Errorf("records: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestSLOAlert(t *testing.T) {
	w := serving(t, objective)
	w.request.Settings.Alerts.RunbookPage = "https://wiki.example.org/capstan"
	w.measure(spentTo(50))
	groups := compose.List(object(t, w.plan(), names.Rules), "spec", "groups")
	fast := compose.List(groups[0].(map[string]any), "rules")[3]
	want := map[string]any{
		"alert": "AlgorithmErrorBudgetBurnsFast",
		"expr": `sum_over_time(capstan:slo_bad_per_second{namespace="shop",algorithm="reco"}[1h]) / sum_over_time(capstan:slo_requests_per_second{namespace="shop",algorithm="reco"}[1h]) > 0.0144` +
			"\nand\n" +
			`sum_over_time(capstan:slo_bad_per_second{namespace="shop",algorithm="reco"}[5m]) / sum_over_time(capstan:slo_requests_per_second{namespace="shop",algorithm="reco"}[5m]) > 0.0144`,
		"labels": map[string]any{"severity": "critical", "namespace": "shop", "algorithm": "reco"},
		"annotations": map[string]any{
			"summary":     "Algorithm reco of namespace shop used its error budget more than 14.4 times as fast as it may in the last hour.",
			"description": "{{ $value | humanizePercentage }} of requests did not meet spec.slo, and at most 0.1 % may. kubectl -n shop describe algorithm reco shows more.",
			"runbook_url": "https://wiki.example.org/capstan#algorithmerrorbudgetburnsfast",
		},
	}
	if diff := cmp.Diff(want, fast); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestSLOIsChecked(t *testing.T) {
	cases := map[string]struct {
		reason string
		slo    string
		want   string
	}{
		"All":      {"of everything there is no budget", "{}, objectives: {successRatio: 1}", "spec.objectives.successRatio: 1: must be above 0 and below 1"},
		"Nothing":  {"nothing is asked", "{}, objectives: {successRatio: 0}", "spec.objectives.successRatio: 0: must be above 0 and below 1"},
		"No share": {"there is no budget of nothing", "{}", "spec.slo: needs objectives.successRatio"},
		"Sooner":   {"late is not sooner than slow", "{failedAfterMs: 40}, objectives: {successRatio: 0.99, latencyMs: 50}", "spec.slo.failedAfterMs: 40: must not be less than objectives.latencyMs"},
		"Short":    {"an hour is the least that burn rates are of", "{window: 30m}, objectives: {successRatio: 0.99}", `spec.slo.window: "30m": must be a time from 1h to 2160h`},
		"Long":     {"nobody keeps that much", "{window: 2161h}, objectives: {successRatio: 0.99}", `spec.slo.window: "2161h": must be a time from 1h to 2160h`},
		"NoTime":   {"days are no unit", "{window: 30d}, objectives: {successRatio: 0.99}", `spec.slo.window: "30d": must be a time from 1h to 2160h`},
		"Latency":  {"at once is never", "{failedAfterMs: 0}, objectives: {successRatio: 0.99}", "spec.slo.failedAfterMs: 0: must be from 1 to 3600000"},
		"Budget":   {"all of it is never left", "{freezeRolloutsAtPercent: 100}, objectives: {successRatio: 0.99}", "spec.slo.freezeRolloutsAtPercent: 100: must be from -1 to 99"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := condition(newWorld(t, "{image: x:1, slo: "+tc.slo+"}").plan(), v1alpha1.TypeAccepted)
			if c.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(c.Message, tc.want) {
				t.Errorf("%s: want %q, got %s: %s", tc.reason, tc.want, c.Reason, c.Message)
			}
		})
	}
}
