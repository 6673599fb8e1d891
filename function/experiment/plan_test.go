// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const (
	usual = "{algorithm: reco, armB: {image: z}, assignment: {percent: 50}, metric: {kind: SuccessRatio}}"
	ended = "{phase: Ended, winner: B, reason: ArmBBetter, message: B is better, effect: 0.02}"
	runs  = "{phase: Running, reason: Experimenting, message: both arms, effect: 0.01}"
)

func parse(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		tb.Fatal(err)
	}
	return m
}

// request about an Experiment with a status, whose Algorithm is given, absent ("") or not sought yet ("?").
func request(tb testing.TB, spec, status, algorithm string) compose.Request {
	tb.Helper()
	xr := composetest.Object{
		"apiVersion": "capstan.dev/v1alpha1", "kind": "Experiment",
		"metadata": map[string]any{"name": "ranking", "namespace": "shop"}, "spec": parse(tb, spec),
	}
	if status != "" {
		xr["status"] = parse(tb, status)
	}
	r := compose.Request{Now: now, Composite: xr, Sought: map[string]bool{requiredAlgorithm: algorithm != "?"}}
	if algorithm != "" && algorithm != "?" {
		r.Required = map[string]compose.Object{requiredAlgorithm: composetest.Object(parse(tb, algorithm))}
	}
	return r
}

// settled plan: Crossplane has written its conditions already, so that none of them changes.
func settled(tb testing.TB, r compose.Request) *compose.Plan {
	tb.Helper()
	for range 2 {
		p, err := Plan(r)
		if err != nil {
			tb.Fatal(err)
		}
		ready := map[string]any{"type": "Ready", "status": "False", "reason": "Creating"}
		if p.Ready {
			ready = map[string]any{"type": "Ready", "status": "True", "reason": "Available"}
		}
		conditions := []any{ready}
		for _, c := range p.Conditions {
			conditions = append(conditions, map[string]any{
				"type": string(c.Type), "status": string(c.Status), "reason": string(c.Reason), "message": c.Message,
			})
		}
		xr := composetest.Object(maps.Clone(r.Composite.Map()))
		status := maps.Clone(compose.Map(xr, "status"))
		if status == nil {
			status = map[string]any{}
		}
		status["conditions"] = conditions
		xr["status"] = status
		r.Composite = xr
	}
	p, err := Plan(r)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// TestState is what an Experiment reports by what is known of its Algorithm.
func TestState(t *testing.T) {
	type want struct {
		Phase   v1alpha1.ExperimentPhase
		Winner  v1alpha1.ExperimentWinner
		Reason  string
		Effect  float64
		Ready   bool
		Decided string
		TTL     time.Duration
	}
	waits := func(reason string) want {
		return want{Phase: v1alpha1.ExperimentWaiting, Reason: reason, Decided: "Unknown", TTL: 30 * time.Minute}
	}
	running := want{v1alpha1.ExperimentRunning, "", "Experimenting", 0.01, true, "Unknown", 30 * time.Minute}
	won := want{v1alpha1.ExperimentEnded, v1alpha1.WinnerB, "ArmBBetter", 0.02, true, "True", 30 * time.Minute}
	lost := func(reason string) want {
		return want{v1alpha1.ExperimentEnded, v1alpha1.WinnerInconclusive, reason, 0.01, true, "False", 30 * time.Minute}
	}
	of := func(asks, name, state, ledger string) string {
		return "{spec: {experiment: " + asks + "}, status: {experiment: {name: " + name + ", " + state[1:] + ", rollout: {ledger: '" + ledger + "'}}}"
	}
	cases := map[string]struct {
		reason, status, algorithm string
		want                      want
	}{
		"NotSought":      {"Nothing is known at the first call.", "", "?", want{TTL: 30 * time.Minute}},
		"NotSoughtAgain": {"What was reported stays until more is known.", runs, "?", running},
		"NoAlgorithm":    {"There is nothing to compare.", "", "", waits("AlgorithmMissing")},
		"NotNamed":       {"It is prepared, and a person begins it.", "", "{spec: {}}", waits("NotRequested")},
		"NotRead":        {"The Algorithm has not looked yet.", "", "{spec: {experiment: ranking}}", waits("AwaitingExperiment")},
		"NotAccepted": {
			"The Algorithm does nothing until its spec is corrected.", "",
			"{spec: {experiment: ranking}, status: {conditions: [{type: Accepted, status: 'False'}]}}", waits("NotAccepted"),
		},
		"Waits": {"The Algorithm says what for.", "", of("ranking", "ranking", "{phase: Waiting, reason: FreezeWindow}", ""), waits("FreezeWindow")},
		"Runs":  {"Both arms get requests.", "", of("ranking", "ranking", runs, ""), running},
		"Ended": {"The result is here, too.", runs, of("ranking", "ranking", ended, ""), won},
		"Later": {"The Algorithm runs the next one, and its ledger has the result.", runs, of("next", "next", "{phase: Preparing}", `{"slot":"a","experimented":["ranking"],"compared":{"name":"ranking","phase":"Ended","winner":"B","reason":"ArmBBetter","effect":0.02}}`), won},
		"MuchLater": {
			"The result is no longer there, and the experiment does not run.", runs,
			of("next", "next", "{phase: Running}", `{"slot":"a","experimented":["other","ranking"],"compared":{"name":"other","phase":"Ended"}}`), lost("ExperimentOver"),
		},
		"Kept":         {"The Algorithm runs the next one.", ended, of("next", "next", "{phase: Running}", ""), won},
		"KeptAfter":    {"The Algorithm is gone.", ended, "", won},
		"KeptAgain":    {"Records were lost, and the Algorithm would say something else.", ended, of("ranking", "ranking", "{phase: Ended, winner: Inconclusive, reason: ExperimentOver}", ""), won},
		"AlgorithmOut": {"It cannot continue without.", runs, "", lost("ExperimentRemoved")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := settled(t, request(t, usual, tc.status, tc.algorithm))
			st, ok := p.Status.(v1alpha1.ExperimentStatus)
			if !ok {
				t.Fatalf("status is %T", p.Status)
			}
			got := want{Phase: st.Phase, Winner: st.Winner, Reason: st.Reason, Ready: p.Ready, TTL: p.TTL}
			if st.Effect != nil {
				got.Effect = *st.Effect
			}
			for _, c := range p.Conditions {
				if c.Type == v1alpha1.TypeExperimentDecided {
					got.Decided = string(c.Status)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			required := map[string]compose.Requirement{requiredAlgorithm: {Kind: v1alpha1.AlgorithmGroupVersionKind, Namespace: "shop", Name: "reco"}}
			if tc.status == ended {
				required = nil // What is required wakes it up, and the result does not change any more.
			}
			if diff := cmp.Diff(required, p.Requires); diff != "" || len(p.Objects) > 0 {
				t.Errorf("it requires its Algorithm until it has ended and composes nothing, got %d objects, -want, +got:\n%s", len(p.Objects), diff)
			}
		})
	}
}

// TestCalm: while arm B is prepared, no step of that changes the Experiment, because each change of it wakes up the Algorithm. Nor does
// the condition change before the result.
func TestCalm(t *testing.T) {
	told := func(state string) (v1alpha1.ExperimentState, xpv2.Condition) {
		p := settled(t, request(t, usual, "{phase: Waiting}", "{spec: {experiment: ranking}, status: {experiment: {name: ranking, "+state[1:]+"}}"))
		st, _ := p.Status.(v1alpha1.ExperimentStatus)
		return st.ExperimentState, p.Conditions[1]
	}
	starts, before := told("{phase: Preparing, reason: Preparing, message: replicas start}")
	checks, after := told("{phase: Preparing, reason: Preparing, message: checks are tried}")
	if diff := cmp.Diff(starts, checks); diff != "" || starts.Message == "" {
		t.Errorf("a step of the preparation should not change the Experiment, got %q: %s", starts.Message, diff)
	}
	blocked, _ := told("{phase: Preparing, reason: NoCapacity, message: the cluster is full}")
	if blocked.Message != "the cluster is full" {
		t.Errorf("what blocks it should be told, got %q", blocked.Message)
	}
	if _, c := told(runs); before != after || before != c || c.Reason != v1alpha1.ReasonUndecided {
		t.Errorf("the condition should not change before the result, got %v, %v and %v", before, after, c)
	}
}

// TestRefused: a spec that is invalid is reported, and the result stays.
func TestRefused(t *testing.T) {
	p := settled(t, request(t, "{algorithm: reco, armB: {}, assignment: {percent: 50}, metric: {kind: SuccessRatio}}", ended, ""))
	st, _ := p.Status.(v1alpha1.ExperimentStatus)
	want := "spec.armB: image, env, modelVersion: set at least one, otherwise both arms are the same"
	if c := p.Conditions[0]; c.Type != v1alpha1.TypeAccepted || c.Status != "False" || c.Message != want {
		t.Errorf("want Accepted=False with %q, got %+v", want, c)
	}
	if st.Winner != v1alpha1.WinnerB || p.Ready {
		t.Errorf("the result should stay, and the Experiment not be ready, got %+v", st)
	}
}
