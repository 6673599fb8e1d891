// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// experimental spec: %s is for more fields of the spec, and for more of the experiment.
const experimental = "{image: x, replicas: 4, env: [{name: MODE, value: old}], route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {soak: 1m%s}, " +
	"experiment: {id: ranking, armB: {env: [{name: MODE, value: new}]}, assignment: {percent: 50%s}, metric: {kind: SuccessRatio}, stop: {duration: 24h}}}"

// experimented world: callers are sent to both arms.
func experimented(tb testing.TB, spec string) *world {
	tb.Helper()
	w := serving(tb, spec)
	w.settle()
	for range 8 {
		if experimentOf(tb, w.plan()).Phase == v1alpha1.ExperimentRunning && w.canaryAsked() != nil {
			w.compose(w.plan())
			return w
		}
		w.settle()
	}
	tb.Fatalf("it does not run: %+v", experimentOf(tb, w.plan()))
	return nil
}

func experimentOf(tb testing.TB, p *compose.Plan) v1alpha1.AlgorithmExperiment {
	tb.Helper()
	st, ok := p.Status.(v1alpha1.AlgorithmStatus)
	if !ok || st.Experiment == nil {
		return v1alpha1.AlgorithmExperiment{}
	}
	return *st.Experiment
}

// finds a result, with guardrails that have these verdicts.
func (w *world) finds(result observev1alpha1.ExperimentResult, verdicts string) {
	w.t.Helper()
	w.judge(verdicts)
	w.change(names.Analysis, func(o composetest.Object) {
		compose.Map(o, "status", "atProvider", "canary")["experiment"] = map[string]any{
			"result": string(result), "effect": 0.021, "lower": 0.004, "upper": 0.038,
			"canary":   map[string]any{"value": 0.991, "samples": 5000.0},
			"baseline": map[string]any{"value": 0.97, "samples": 5100.0},
		}
	})
}

// TestExperiment through all that can come of one.
func TestExperiment(t *testing.T) {
	type want struct {
		Phase  v1alpha1.ExperimentPhase
		Winner v1alpha1.ExperimentWinner
		Reason string
		Status string
		Moves  string
	}
	running := func(w *world) {}
	spec := fmt.Sprintf(experimental, "", "")
	edited := func(from, to string) func(w *world) {
		return func(w *world) { w.edit(strings.Replace(spec, from, to, 1)) }
	}
	ended := func(winner v1alpha1.ExperimentWinner, reason xpv2.ConditionReason) want {
		status := "True"
		if winner == v1alpha1.WinnerInconclusive {
			status = "False"
		}
		return want{v1alpha1.ExperimentEnded, winner, string(reason), status, "reco-slot-a:100 reco-slot-b:0"}
	}
	both := want{Phase: v1alpha1.ExperimentRunning, Reason: "Experimenting", Status: "Unknown", Moves: "reco-slot-a:50 reco-slot-b:50"}
	cases := map[string]struct {
		reason string
		do     func(w *world)
		want   want
	}{
		"Running": {"Nobody knows anything yet.", running, both},
		"Undecided": {"Too little is known.", func(w *world) {
			w.finds(observev1alpha1.ExperimentUndecided, "III")
		}, both},
		"ArmB":         {"It is better, and nobody goes there for it.", func(w *world) { w.finds(observev1alpha1.ExperimentCanaryBetter, "PPP") }, ended(v1alpha1.WinnerB, v1alpha1.ReasonArmBBetter)},
		"ArmA":         {"It is better.", func(w *world) { w.finds(observev1alpha1.ExperimentBaselineBetter, "PPP") }, ended(v1alpha1.WinnerA, v1alpha1.ReasonArmABetter)},
		"NoDifference": {"That is a result.", func(w *world) { w.finds(observev1alpha1.ExperimentNoDifference, "PPP") }, ended(v1alpha1.WinnerNone, v1alpha1.ReasonNoDifference)},
		"Guardrail": {"A guardrail counts for more than the metric.", func(w *world) {
			w.finds(observev1alpha1.ExperimentCanaryBetter, "PFF")
		}, ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonGuardrailViolated)},
		"OneFailure": {"One failure may be chance.", func(w *world) {
			w.finds(observev1alpha1.ExperimentUndecided, "PPF")
		}, both},
		"Over": {"It has lasted as long as it may.", func(w *world) {
			w.later(24 * time.Hour)
			w.finds(observev1alpha1.ExperimentUndecided, "PPP")
		}, ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonDurationOver)},
		"FirstLook": {"The metric is sure before anybody can tell of the guardrails.", func(w *world) {
			w.finds(observev1alpha1.ExperimentCanaryBetter, "P")
		}, both},
		"GuardrailsOpen": {"Too few requests tell whether arm B does harm, and somebody would adopt it.", func(w *world) {
			w.finds(observev1alpha1.ExperimentCanaryBetter, "PPPPPPPPPI")
		}, both},
		"SameUnsettled": {"Who is told that arm B is as good would adopt it as well.", func(w *world) {
			w.finds(observev1alpha1.ExperimentNoDifference, "IIII")
		}, both},
		"WorseUnsettled": {"Nobody adopts what is worse: callers are not kept in it for the sake of its guardrails.", func(w *world) {
			w.finds(observev1alpha1.ExperimentBaselineBetter, "III")
		}, ended(v1alpha1.WinnerA, v1alpha1.ReasonArmABetter)},
		"WorseFirstLooks": {"A violation would have been told after two more looks, and says why it is worse.", func(w *world) {
			w.finds(observev1alpha1.ExperimentBaselineBetter, "II")
		}, both},
		"WorseUnanswered": {"Looks that Prometheus did not answer tell nothing of the guardrails.", func(w *world) {
			w.finds(observev1alpha1.ExperimentBaselineBetter, "IIEE")
		}, both},
		"WorsePerhapsViolated": {"The next look tells whether it is worse by a violation.", func(w *world) {
			w.finds(observev1alpha1.ExperimentBaselineBetter, "PPPF")
		}, both},
		"GuardrailsWithoutTraffic": {"No request of arm B was measured, whatever the metric counts.", func(w *world) {
			w.finds(observev1alpha1.ExperimentCanaryBetter, "NNNN")
		}, both},
		"FailedOnce": {"It may be chance, and the next look tells.", func(w *world) {
			w.finds(observev1alpha1.ExperimentNoDifference, "PPF")
		}, both},
		"GuardrailAtOnce": {"Both are known in one look, and the guardrail counts for more.", func(w *world) {
			w.finds(observev1alpha1.ExperimentBaselineBetter, "FF")
		}, ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonGuardrailViolated)},
		"GuardrailAtDeadline": {"A guardrail counts for more than the end of its time.", func(w *world) {
			w.later(24 * time.Hour)
			w.finds(observev1alpha1.ExperimentUndecided, "FF")
		}, ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonGuardrailViolated)},
		"DecidedAtDeadline": {"What was found in its time is found.", func(w *world) {
			w.later(24 * time.Hour)
			w.finds(observev1alpha1.ExperimentCanaryBetter, "PPP")
		}, ended(v1alpha1.WinnerB, v1alpha1.ReasonArmBBetter)},
		"UnsettledAtDeadline": {"Arm B is better by the metric, and nobody knows whether it does harm.", func(w *world) {
			w.later(24 * time.Hour)
			w.finds(observev1alpha1.ExperimentCanaryBetter, "PPI")
		}, ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonDurationOver)},
		"BeforeDeadline": {"A second before the end of its time it goes on.", func(w *world) {
			w.later(24*time.Hour - 2*time.Second)
			w.finds(observev1alpha1.ExperimentUndecided, "PPP")
		}, both},
		"OverWithoutMetrics": {"It ends in time, also while nobody can look.", func(w *world) {
			w.finds(observev1alpha1.ExperimentUndecided, "PPP")
			w.later(10 * time.Minute)
			w.compose(w.plan())
			w.later(24 * time.Hour)
		}, ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonDurationOver)},
		"Shortened": {"Its time is over at once when less of it is given.", func(w *world) {
			w.later(2 * time.Hour)
			w.finds(observev1alpha1.ExperimentUndecided, "PPP")
			edited("duration: 24h", "duration: 1h")(w)
		}, ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonDurationOver)},
		"ClockBack": {"The clock was set back, and nothing ends by what it found.", func(w *world) {
			w.finds(observev1alpha1.ExperimentUndecided, "PPP")
			w.later(-30 * time.Minute)
		}, both},
		"Longer": {"The test holds whenever it ends, so that it may be lengthened.", func(w *world) {
			edited("duration: 24h", "duration: 48h")(w)
			w.later(25 * time.Hour)
			w.finds(observev1alpha1.ExperimentUndecided, "PPP")
		}, both},
		"NotServing": {"A pod that was evicted pauses it.", func(w *world) { w.available(names.SlotB, 0) }, want{
			v1alpha1.ExperimentRunning, "", string(v1alpha1.ReasonNotServing), "Unknown", "reco-slot-a:100 reco-slot-b:0",
		}},
		"NeverServing": {"No replica of arm B serves again.", func(w *world) {
			for range 3 {
				w.available(names.SlotB, 0)
				w.compose(w.plan())
				w.later(7 * time.Minute)
			}
			w.available(names.SlotB, 0)
		}, ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonNotServing)},
		"ServingAgain": {"It goes on with what it counted, as the same experiment.", func(w *world) {
			epoch := rolloutEpoch(t, w)
			w.available(names.SlotB, 0)
			w.compose(w.plan())
			w.compose(w.plan())
			if got := rolloutEpoch(t, w); got != epoch {
				t.Errorf("what was counted in epoch %d is still gathered, got epoch %d", epoch, got)
			}
			w.runIn(names.SlotB, nil)
			w.settle()
			if got := callersOf(t, w.plan()); got != "reco-slot-a:100 reco-slot-b:0" {
				t.Errorf("a candidate that lost all replicas gets no request for a minute, got %s", got)
			}
			w.later(time.Minute)
			w.settle()
		}, both},
		"Removed": {"Nobody asks for it any more.", func(w *world) {
			edited("experiment: {id: ranking", "x: {id: ranking")(w)
		}, want{v1alpha1.ExperimentEnded, v1alpha1.WinnerInconclusive, string(v1alpha1.ReasonExperimentRemoved), "", "reco-slot-a:100 reco-slot-b:0"}},
		"OtherMetric": {
			"What was counted is about another one.", edited("kind: SuccessRatio", "kind: Latency, withinMs: 5"),
			ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonExperimentEdited),
		},
		"OtherShare": {
			"Whoever met which arm would be another.", edited("percent: 50", "percent: 10"),
			ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonExperimentEdited),
		},
		"NewRevision": {
			"Its rollout goes first.", edited("image: x", "image: z"),
			ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonSuperseded),
		},
		"Adopted": {
			"Arm B is rolled out like any other revision, from the first step.", edited("value: old", "value: new"),
			ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonSuperseded),
		},
		"Refused": {"A spec that cannot be carried out changes nothing.", edited("percent: 50", "percent: 99"), want{Moves: "reco-slot-a:50 reco-slot-b:50"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := experimented(t, spec)
			tc.do(w)
			p := w.plan()
			st := experimentOf(t, p)
			got := want{st.Phase, st.Winner, st.Reason, string(condition(p, v1alpha1.TypeExperimentDecided).Status), callersOf(t, p)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, st.Message)
			}
			if len(p.Events) > 1 {
				t.Errorf("one pass tells %d events", len(p.Events))
			}
		})
	}
}

// rolloutEpoch that evidence is gathered for.
func rolloutEpoch(tb testing.TB, w *world) int64 {
	tb.Helper()
	return compose.Number(w.request.Observed[names.Analysis].Map(), 0, "spec", "forProvider", "metrics", "canary", "epoch")
}

// TestExperimentToldOpen: who waits for an experiment, or reads what came of it, is told of guardrails that keep it from its end.
func TestExperimentToldOpen(t *testing.T) {
	w := experimented(t, fmt.Sprintf(experimental, "", ""))
	w.finds(observev1alpha1.ExperimentCanaryBetter, "PPI")
	const open = "success, success-against-baseline"
	if st := experimentOf(t, w.plan()); !strings.Contains(st.Message, "arm B is better") || !strings.Contains(st.Message, open) {
		t.Errorf("it should tell what it waits for, got %q", st.Message)
	}
	if c := condition(w.plan(), v1alpha1.TypeExperimentDecided); !strings.Contains(c.Message, open) {
		t.Errorf("the condition should tell it as well, got %q", c.Message)
	}
	w.later(24 * time.Hour)
	w.finds(observev1alpha1.ExperimentCanaryBetter, "PPI")
	if st := experimentOf(t, w.plan()); !strings.Contains(st.Message, "guardrails have not passed ("+open+"), although arm B is better") {
		t.Errorf("it should tell why nobody has won, got %q", st.Message)
	}
}

// callersOf a plan's route, of the rule for all of them.
func callersOf(tb testing.TB, p *compose.Plan) string {
	tb.Helper()
	var words []string
	rules := compose.List(object(tb, p, names.Route), "spec", "rules")
	for _, b := range compose.List(rules[len(rules)-1].(map[string]any), "backendRefs") {
		words = append(words, fmt.Sprintf("%v:%v", b.(map[string]any)["name"], b.(map[string]any)["weight"]))
	}
	return strings.Join(words, " ")
}

// TestExperimentOnce: an experiment that has been run does not begin again, whatever became of its spec meanwhile, and arm B is
// gone.
func TestExperimentOnce(t *testing.T) {
	spec := fmt.Sprintf(experimental, "", "")
	w := experimented(t, spec)
	w.finds(observev1alpha1.ExperimentCanaryBetter, "PPP")
	w.compose(w.plan())
	for _, edit := range []string{spec, strings.Replace(spec, "experiment: {id: ranking", "x: {id: ranking", 1), spec} {
		w.edit(edit)
		for range 4 {
			w.later(time.Minute)
			w.settle()
		}
		p := w.plan()
		if st := experimentOf(t, p); st.Phase != v1alpha1.ExperimentEnded || st.Winner != v1alpha1.WinnerB || *st.Effect != 0.021 || st.B.Value == nil {
			t.Errorf("what came of it should be told, got %+v", st)
		}
		if r := rolloutOf(t, p); r.Phase != v1alpha1.RolloutStable || len(r.Failed) > 0 || object(t, p, names.Deployment(names.SlotB)) != nil {
			t.Errorf("arm B should be gone and condemned by nobody, got %s, failed %v", r.Phase, r.Failed)
		}
		if o, required := p.Requires[requiredExperiment]; required {
			t.Errorf("an experiment that is over should wake up nobody any more, and %v is required", o)
		}
	}
	w.edit(strings.Replace(spec, "id: ranking", "id: another", 1))
	w.settle()
	w.settle()
	if st := experimentOf(t, w.plan()); st.Phase != v1alpha1.ExperimentRunning || st.Name != "another" {
		t.Errorf("another id should begin another experiment, got %+v", st)
	}
}

// TestExperimentWaits tells what keeps an experiment from beginning.
func TestExperimentWaits(t *testing.T) {
	spec := fmt.Sprintf(experimental, "", "")
	cases := map[string]struct {
		reason string
		spec   string
		route  compose.Availability
		want   xpv2.ConditionReason
	}{
		"Freeze": {
			"Nobody is sent to anything in such a time.",
			strings.Replace(spec, "soak: 1m", `soak: 1m, freeze: [{cron: "0 0 * * *", for: 24h}]`, 1), compose.Available, v1alpha1.ReasonFreezeWindow,
		},
		"Same":      {"There would be nothing to compare.", strings.Replace(spec, "value: new", "value: old", 1), compose.Available, v1alpha1.ReasonSameRevision},
		"NoGateway": {"Nothing would keep the arms apart.", spec, compose.Unavailable, v1alpha1.ReasonGatewayAPIMissing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			w.request.Kinds[RouteGVK] = tc.route
			for range 4 {
				w.settle()
			}
			p := w.plan()
			st := experimentOf(t, p)
			if st.Phase != v1alpha1.ExperimentWaiting || st.Reason != string(tc.want) || condition(p, v1alpha1.TypeExperimentDecided).Reason != tc.want {
				t.Errorf("%s\ngot %+v, want it to wait for %s", tc.reason, st, tc.want)
			}
			if object(t, p, names.Deployment(names.SlotB)) != nil {
				t.Error("nothing should start")
			}
		})
	}
}

// TestExperimentObject: what becomes of the Experiment that the spec names, or should.
func TestExperimentObject(t *testing.T) {
	type want struct {
		Name     string
		Phase    v1alpha1.ExperimentPhase
		Reason   string
		Accepted string
		Moves    string
		Says     string
	}
	const both, back = "reco-slot-a:50 reco-slot-b:50", "reco-slot-a:100 reco-slot-b:0"
	spec := fmt.Sprintf(experimental, "", "")
	modify := func(name string, change func(spec map[string]any)) func(w *world) {
		return func(w *world) {
			o, err := composetest.Decode(w.experiments[name])
			if err != nil {
				w.t.Fatal(err)
			}
			change(compose.Map(o, "spec"))
			w.experiments[name] = o
		}
	}
	rename := func(w *world) {
		s := maps.Clone(compose.Map(w.request.Composite.Map(), "spec"))
		s["experiment"] = "wrong"
		xr := composetest.Object(maps.Clone(w.request.Composite.Map()))
		xr["spec"] = s
		w.request.Composite = xr
	}
	cases := map[string]struct {
		reason string
		do     func(w *world)
		want   want
	}{
		"Unread": {"Crossplane has not looked for it yet: that is no reason to end it.", func(w *world) { w.unread = true }, want{
			Accepted: "AwaitingExperiment", Moves: both, Says: `spec.experiment: "ranking": this Experiment has not been read yet`,
		}},
		"Deleted": {"Nobody asks for it any more.", func(w *world) { delete(w.experiments, "ranking") }, want{
			"ranking", v1alpha1.ExperimentEnded, "ExperimentRemoved", "Valid", back, "its Experiment was deleted",
		}},
		"Edited": {"What was counted is about another one.", modify("ranking", func(s map[string]any) {
			compose.Map(s, "assignment")["percent"] = 10.0
		}), want{"ranking", v1alpha1.ExperimentEnded, "ExperimentEdited", "Valid", back, "it was edited"}},
		"Lengthened": {"The test holds whenever it ends.", modify("ranking", func(s map[string]any) {
			compose.Map(s, "stop")["duration"] = "48h"
		}), want{"ranking", v1alpha1.ExperimentRunning, "Experimenting", "Valid", both, "arm A is revision"}},
		"Invalid": {"A bad edit touches nothing that runs.", modify("ranking", func(s map[string]any) {
			s["armB"] = map[string]any{}
		}), want{Accepted: "ExperimentInvalid", Moves: both, Says: "spec.armB: image, env, modelVersion: set at least one"}},
		"WrongName": {"A typing error does not end what runs.", rename, want{
			"ranking", v1alpha1.ExperimentRunning, "Experimenting", "Valid", both, "arm A is revision",
		}},
		"WrongNameAndDeleted": {"Nothing that is asked for runs.", func(w *world) { rename(w); delete(w.experiments, "ranking") }, want{
			"wrong", v1alpha1.ExperimentWaiting, "ExperimentMissing", "Valid", back, "has no such Experiment",
		}},
		"Other": {"Another one ends it.", func(w *world) { w.edit(strings.Replace(spec, "id: ranking", "id: another", 1)) }, want{
			"another", v1alpha1.ExperimentWaiting, "RolloutFirst", "Valid", back, "it begins once all requests reach what the spec asks for",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := experimented(t, spec)
			tc.do(w)
			p := w.plan()
			st, c := experimentOf(t, p), condition(p, v1alpha1.TypeAccepted)
			got := want{st.Name, st.Phase, st.Reason, string(c.Reason), callersOf(t, p), tc.want.Says}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if !strings.Contains(st.Message+c.Message, tc.want.Says) {
				t.Errorf("%s\nwant %q in %q, %q", tc.reason, tc.want.Says, st.Message, c.Message)
			}
			if p.Requires[requiredExperiment].Namespace != "shop" {
				t.Errorf("the Experiment should be required, got %v", p.Requires)
			}
		})
	}
}

// TestExperimentUnusable: an Experiment that cannot run is reported with field, value and remedy, and rollouts go on.
func TestExperimentUnusable(t *testing.T) {
	spec := fmt.Sprintf(experimental, "", "")
	cases := map[string]struct {
		reason string
		spec   string
		do     func(w *world)
		want   xpv2.ConditionReason
		says   string
	}{
		"Missing": {
			"A name that nobody has.", spec, func(w *world) { clear(w.experiments) }, v1alpha1.ReasonExperimentMissing,
			`spec.experiment: "ranking": namespace "shop" has no such Experiment: create it, or correct the name`,
		},
		"Terminating": {"It is about to be gone.", spec, func(w *world) {
			compose.Map(w.experiments["ranking"], "metadata")["deletionTimestamp"] = "2026-11-20T12:00:00Z"
		}, v1alpha1.ReasonExperimentMissing, "has no such Experiment"},
		"OfAnother": {
			"It is about another Algorithm.", strings.Replace(spec, "id: ranking", "id: ranking, algorithm: search", 1), func(*world) {},
			v1alpha1.ReasonExperimentInvalid,
			`spec.experiment: "ranking": this Experiment cannot run: spec.algorithm: "search": is another Algorithm: name an Experiment of Algorithm "reco" in spec.experiment`,
		},
		"OfNoRegistry": {
			"There is no version.", strings.Replace(spec, "env: [{name: MODE, value: new}]", "modelVersion: '3'", 1), func(*world) {},
			v1alpha1.ReasonExperimentInvalid, `spec.armB.modelVersion: "3": needs a model of the registry`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			tc.do(w)
			for range 4 {
				w.settle()
			}
			p := w.plan()
			st, c := experimentOf(t, p), condition(p, v1alpha1.TypeExperimentDecided)
			if st.Phase != v1alpha1.ExperimentWaiting || c.Reason != tc.want || !strings.Contains(c.Message, tc.says) {
				t.Errorf("%s\nwant %s with %q, got %+v, %+v", tc.reason, tc.want, tc.says, st, c)
			}
			if condition(p, v1alpha1.TypeUpdated).Status != "True" || object(t, p, names.Deployment(names.SlotB)) != nil {
				t.Error("the Algorithm should serve, and nothing else start")
			}
		})
	}
}

// TestExperimentOver: what the Experiment remembers counts when the ledger was lost.
func TestExperimentOver(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(experimental, "", ""))
	w.experiments["ranking"]["status"] = map[string]any{"phase": "Ended", "winner": "B"}
	for range 6 {
		w.settle()
	}
	if st := experimentOf(t, w.plan()); st.Phase != v1alpha1.ExperimentEnded || st.Reason != string(v1alpha1.ReasonExperimentOver) {
		t.Errorf("it has been run, and should not run again, got %+v", st)
	}
}

// TestExperimentByHeader sends only those callers to arm B that carry it, and takes them back with all others.
func TestExperimentByHeader(t *testing.T) {
	w := experimented(t, fmt.Sprintf(experimental, ", match: [header X-Beta=b]", ", match: [header X-Arm=b]"))
	p := w.plan()
	if got, want := callersOf(t, p), "reco-slot-a:100 reco-slot-b:0"; got != want {
		t.Errorf("callers without the header: got %s, want %s", got, want)
	}
	rules := compose.List(object(t, p, names.Route), "spec", "rules")
	if text := fmt.Sprint(rules); len(rules) != 2 || !strings.Contains(text, "X-Arm") || strings.Contains(text, "X-Beta") {
		t.Errorf("only callers with X-Arm should meet arm B, got %s", text)
	}
	w.finds(observev1alpha1.ExperimentBaselineBetter, "PPP")
	w.compose(w.plan())
	w.stale()
	w.later(time.Hour)
	if n := sizeIn(t, w.plan(), names.SlotB); n < 1 {
		t.Errorf("until the Gateway has taken it the header still leads to arm B, which has %d replicas", n)
	}
	w.accept()
	w.compose(w.plan())
	if n := sizeIn(t, w.plan(), names.SlotB); n > 0 {
		t.Errorf("arm B should end, and has %d replicas", n)
	}
}

// TestExperimentOutage: a time without metrics holds it, and nothing is counted from zero.
func TestExperimentOutage(t *testing.T) {
	w := experimented(t, fmt.Sprintf(experimental, "", ""))
	asked := compose.Number(w.canaryAsked(), 0, "epoch")
	w.finds(observev1alpha1.ExperimentUndecided, "PPP")
	w.later(10 * time.Minute)
	w.compose(w.plan())
	if st := experimentOf(t, w.plan()); st.Reason != string(v1alpha1.ReasonMetricsUnavailable) || st.Phase != v1alpha1.ExperimentRunning {
		t.Errorf("nobody looks, so that it should hold, got %+v", st)
	}
	w.later(time.Second)
	w.finds(observev1alpha1.ExperimentUndecided, "PPP")
	w.compose(w.plan())
	if st := experimentOf(t, w.plan()); st.Reason != string(v1alpha1.ReasonExperimenting) || compose.Number(w.canaryAsked(), 0, "epoch") != asked {
		t.Errorf("it should go on in epoch %d, got %+v in epoch %v", asked, st, w.canaryAsked()["epoch"])
	}
}

// TestExperimentOfModels gives arm B a version of its own.
func TestExperimentOfModels(t *testing.T) {
	const spec = "{image: x, replicas: 2, model: {uri: models:/m/3, candidateAlias: challenger}, " +
		"route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {}, " +
		"experiment: {id: models, armB: {modelVersion: \"4\"}, assignment: {percent: 50}, metric: {kind: SuccessRatio}}}"
	w := newWorld(t, spec)
	w.compose(w.plan())
	version := func(resource, v string) {
		w.change(resource, func(o composetest.Object) {
			generation := compose.Map(o, "metadata")["generation"]
			o["status"] = map[string]any{
				"atProvider": map[string]any{"version": v, "source": "s3://models/m/" + v, "status": "READY"},
				"conditions": []any{
					map[string]any{"type": "Synced", "status": "True", "observedGeneration": generation},
					map[string]any{"type": "Ready", "status": "True", "observedGeneration": generation},
				},
			}
		})
	}
	version(names.ModelVersionPrefix+hashOf("m"), "3")
	w.told(w.plan())
	for range 6 {
		w.settle()
		w.told(w.plan())
	}
	if st := experimentOf(t, w.plan()); st.Reason != string(v1alpha1.ReasonAwaitingModel) {
		t.Fatalf("the version of arm B is not known, got %+v", st)
	}
	version(names.ModelVersionPrefix+hashOf("m", "armB"), "4")
	for range 4 {
		w.settle()
	}
	p := w.plan()
	if text := marshalled(t, &compose.Plan{Status: p.Objects[names.Deployment(names.SlotB)].Object}); !strings.Contains(text, "s3://models/m/4") {
		t.Errorf("arm B should fetch version 4, got %s", text)
	}
	if text := marshalled(t, &compose.Plan{Status: p.Objects[names.Deployment(names.SlotA)].Object}); !strings.Contains(text, "s3://models/m/3") {
		t.Errorf("arm A should still fetch version 3, got %s", text)
	}
	for resource := range p.Objects {
		if strings.HasPrefix(resource, names.ModelAliasPrefix) {
			t.Errorf("arm B is no candidate to be live, and an alias is on it: %s", resource)
		}
	}
}

// TestStaleFindings are not held against the revision that has the slot now.
func TestStaleFindings(t *testing.T) {
	cases := map[string]struct {
		reason   string
		revision func(w *world) string
		want     bool
	}{
		"OfItself": {"It ends again and again.", func(w *world) string {
			return compose.Text(w.request.Observed[names.Deployment(names.SlotB)].Map(), "metadata", "annotations", names.AnnotationRevision)
		}, true},
		"OfTheOneBefore": {"Another one did, and its pods are gone.", func(*world) string { return "0123456789" }, false},
		"OfUnknown":      {"Pods of before an upgrade do not say whose they are.", func(*world) string { return "" }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := soaking(t, "{image: %s, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {canaryWeight: 50}}")
			w.available(names.SlotB, 2)
			w.find(observev1alpha1.Finding{Reason: "CrashLooping", Message: "it ends", Slot: names.SlotB, Revision: tc.revision(w)})
			r := rolloutOf(t, w.plan())
			if got := r.Phase == v1alpha1.RolloutRollingBack; got != tc.want {
				t.Errorf("%s\ngot %s (%s), want it rolled back: %t", tc.reason, r.Phase, r.Reason, tc.want)
			}
		})
	}
}
