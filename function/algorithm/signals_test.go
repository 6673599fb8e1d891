// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/signals"
)

// signalled sets the Signals that the observed Analysis reports beside what it knows, each until a minute from now.
func (w *world) signalled(all ...observev1alpha1.ActiveSignal) {
	w.t.Helper()
	for i := range all {
		all[i].Until = metav1.NewTime(w.request.Now.Add(time.Minute))
	}
	told, err := compose.AsMap(observev1alpha1.AnalysisObservation{Signals: all})
	if err != nil {
		w.t.Fatal(err)
	}
	w.change(names.Analysis, func(o composetest.Object) {
		at := maps.Clone(compose.Map(o, "status", "atProvider"))
		if at == nil {
			at = map[string]any{}
		}
		at["signals"] = told["signals"]
		o["status"] = map[string]any{"atProvider": at}
	})
}

// TestSignalRaisesReplicas shows that a Signal raises the least number of an autoscaler for as long as it lasts, within the spec's bounds.
func TestSignalRaisesReplicas(t *testing.T) {
	w := serving(t, byLoad)
	w.provided(compose.Available)
	w.compose(w.plan())
	least := func() int64 {
		t.Helper()
		p := w.plan()
		w.compose(p)
		return compose.Number(w.request.Observed[names.Autoscaler(names.SlotA)].Map(), 0, "spec", "forProvider", "autoscaler", "minReplicas")
	}
	raise := func(n int32) observev1alpha1.ActiveSignal {
		return observev1alpha1.ActiveSignal{Name: "sale", UID: "u", Do: string(eventsv1alpha1.ActMinReplicas), Replicas: n}
	}
	for _, step := range []struct {
		reason string
		do     func()
		want   int64
	}{
		{"without one the spec counts", func() {}, 2},
		{"more than the spec", func() { w.signalled(raise(6)) }, 6},
		{"less changes nothing", func() { w.signalled(raise(1)) }, 2},
		{"at most what the spec allows", func() { w.signalled(raise(100)) }, 9},
		{"one that has ended counts no more, although the provider still reports it", func() { w.later(time.Minute) }, 2},
	} {
		step.do()
		if got := least(); got != step.want {
			t.Errorf("%s: minReplicas is %d, want %d", step.reason, got, step.want)
		}
	}
}

// TestSignalStatus shows that the status lists what is in force, and says what has no effect.
func TestSignalStatus(t *testing.T) {
	cases := map[string]struct {
		reason, spec string
		do           eventsv1alpha1.Act
		want         string
	}{
		"Holds":       {"it holds rollouts", "{image: x, lifecycle: {}}", eventsv1alpha1.ActHold, ""},
		"NoRollouts":  {"there is nothing to hold", "{image: x}", eventsv1alpha1.ActHold, "spec.lifecycle is not set, so that there are no rollouts"},
		"NoScaling":   {"there is nothing to raise", "{image: x}", eventsv1alpha1.ActMinReplicas, "spec.scaling is not set: set it, or edit spec.replicas"},
		"WithScaling": {"it raises the least number", byLoad, eventsv1alpha1.ActMinReplicas, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, tc.spec)
			w.signalled(observev1alpha1.ActiveSignal{Name: "errors", UID: "u", Do: string(tc.do), Replicas: 3, Cause: "alertmanager: Errors"})
			st, ok := w.plan().Status.(v1alpha1.AlgorithmStatus)
			if !ok {
				t.Fatal("there is no status of an Algorithm")
			}
			want := []v1alpha1.SignalStatus{{Name: "errors", Do: string(tc.do), Cause: "alertmanager: Errors", Ignored: tc.want}}
			if diff := cmp.Diff(want, st.Signals, cmpopts.IgnoreFields(v1alpha1.SignalStatus{}, "Until")); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSignalAborts shows that a Signal takes traffic back from the revision that it names, and from no other.
func TestSignalAborts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		revision func(candidate string) string
		want     v1alpha1.RolloutPhase
	}{
		"Candidate": {"the revision under test", func(c string) string { return c }, v1alpha1.RolloutRollingBack},
		"Another":   {"another revision is not under test", func(string) string { return "0123456789" }, v1alpha1.RolloutStepping},
	} {
		t.Run(name, func(t *testing.T) {
			const spec = "{image: %s, replicas: 4, lifecycle: {canaryWeight: 50, soak: 1h, bake: 10m}}"
			w := serving(t, fmt.Sprintf(spec, "x:1"))
			w.edit(fmt.Sprintf(spec, "x:2"))
			for range 4 {
				w.settle()
				w.later(time.Minute)
				w.judges("II")
			}
			st, _ := w.plan().Status.(v1alpha1.AlgorithmStatus)
			if st.Rollout == nil || st.Rollout.Phase != v1alpha1.RolloutStepping {
				t.Fatalf("want a candidate under test, got %+v", st.Rollout)
			}
			w.signalled(observev1alpha1.ActiveSignal{Name: "errors", UID: "u", Do: string(eventsv1alpha1.ActAbort), Revision: tc.revision(st.Rollout.Candidate)})
			st, _ = w.plan().Status.(v1alpha1.AlgorithmStatus)
			if st.Rollout == nil || st.Rollout.Phase != tc.want {
				t.Errorf("%s: want phase %s, got %+v", tc.reason, tc.want, st.Rollout)
			}
			if aborted := tc.want == v1alpha1.RolloutRollingBack; aborted && !strings.Contains(st.Rollout.Message, "a Signal aborts it") {
				t.Errorf("the message should name the Signal and no field, got %q", st.Rollout.Message)
			}
		})
	}
}

// hookWorld has an Algorithm that serves and declares a hook for Signals.
func hookWorld(t *testing.T, hook string) *world {
	t.Helper()
	w := serving(t, fmt.Sprintf("{image: x, lifecycle: {hooks: [%s]}}", hook))
	w.request.Kinds[observev1alpha1.HookGroupVersionKind] = compose.Available
	w.passes(3)
	return w
}

func asksFor(name, hook string) observev1alpha1.ActiveSignal {
	return observev1alpha1.ActiveSignal{Name: name, UID: name + "-uid", Do: string(eventsv1alpha1.ActHook), Hook: hook, Cause: `shop: "cache" $(HOME)`}
}

// passes so many times, as Crossplane does: the status is written, too. It returns the status of Signals, and the reasons of events.
func (w *world) passes(n int) (st []v1alpha1.SignalStatus, events []string) {
	w.t.Helper()
	for range n {
		p := w.plan()
		w.compose(p)
		w.told(p)
		for _, e := range p.Events {
			events = append(events, e.Reason)
		}
	}
	return signals.Remembered(w.request.Composite.Map()), events
}

const flushByHTTP = "{name: flush, at: Signal, url: http://cache.shop.svc/flush}"

// TestSignalSendsARequest shows that a Signal has the request of a hook sent, with one key, until it has a result, and that nothing has it
// sent another time: neither the status of the Analysis nor the one of the Algorithm, if it is lost.
func TestSignalSendsARequest(t *testing.T) {
	w := hookWorld(t, flushByHTTP)
	resource := names.HookPrefix + "flush"
	if w.request.Observed[resource] != nil {
		t.Fatal("nothing is sent without a Signal")
	}
	w.signalled(asksFor("stale", "flush"))
	st, _ := w.passes(1)
	if len(st) != 1 || st[0].Hook.Result != v1alpha1.HookResultRunning || w.request.Observed[resource] == nil {
		t.Fatalf("it should be sent, got %+v", st)
	}
	began := w.request.Now.Format(time.RFC3339)
	w.request.Now = w.request.Now.Add(5 * time.Second)
	w.signalled() // as after the Analysis was created again
	w.passes(1)
	w.signalled(asksFor("stale", "flush"))
	w.passes(2)
	if w.request.Observed[resource] == nil {
		t.Fatal("it should be sent until it has a result")
	}
	want := []map[string]any{{
		"key": "signal-stale-uid", "hook": "flush", "at": "Signal", "namespace": "shop", "name": "reco", "signal": "stale", "cause": `shop: "cache" $(HOME)`, "time": began,
	}}
	if diff := cmp.Diff(want, w.answer("flush", observev1alpha1.HookPassed)); diff != "" {
		t.Errorf("the request: -want, +got:\n%s", diff)
	}
	st, events := w.passes(1)
	if len(st) != 1 || st[0].Hook.Result != v1alpha1.HookResultPassed || !slices.Contains(events, "HookPassed") || w.request.Observed[resource] == nil {
		t.Errorf("the result should be in the status and in an event, and what has it should stay, got %+v and %q", st, events)
	}
	for name, lose := range map[string]func(){
		"nothing": func() {}, "the Analysis": func() { w.signalled(); w.passes(1); w.signalled(asksFor("stale", "flush")) },
	} {
		lose()
		if _, events := w.passes(2); w.request.Observed[resource] != nil || slices.Contains(events, "HookPassed") {
			t.Errorf("with the loss of %s it is sent again", name)
		}
	}
}

// TestSignalRequestWithoutStatus shows that a request which was sent is known by its Hook when the status is lost.
func TestSignalRequestWithoutStatus(t *testing.T) {
	w := hookWorld(t, flushByHTTP)
	w.signalled(asksFor("stale", "flush"))
	w.passes(1)
	w.answer("flush", observev1alpha1.HookUnreachable)
	w.status(func(st map[string]any) { delete(st, "signals") })
	st, _ := w.passes(1)
	if len(st) != 1 || st[0].Hook.Result != v1alpha1.HookResultFailed {
		t.Errorf("want the result that the Hook has, got %+v", st)
	}
	w.passes(1)
	if c := condition(w.plan(), v1alpha1.TypeHooksPassed); c.Reason != v1alpha1.ReasonHookFailed || c.Message != `hook "flush" of Signal "stale" failed: m` {
		t.Errorf("the condition is %v %q", c.Reason, c.Message)
	}
}

// TestSignalRunsAJob shows that a Signal has a Job made, once, with nothing in it that a sender chose.
func TestSignalRunsAJob(t *testing.T) {
	w := hookWorld(t, `{name: dump, at: Signal, job: {image: "tools:1", args: ["$(CAPSTAN_HOOK_KEY)"], securityContext: {runAsUser: 65532}}}`)
	resource := jobOf("signal-slow-uid")
	w.signalled(asksFor("slow", "dump"), asksFor("unknown", "other"))
	p := w.plan()
	raw, err := json.Marshal(p.Objects[resource].Object)
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]bool{
		`{"name":"CAPSTAN_HOOK_SIGNAL","value":"slow"}`: true, `{"name":"CAPSTAN_HOOK_KEY","value":"signal-slow-uid"}`: true, "HOME": false, "cache": false,
	} {
		if strings.Contains(string(raw), word) != want {
			t.Errorf("%s should be in the Job: %v, got %s", word, want, raw)
		}
	}
	st, _ := p.Status.(v1alpha1.AlgorithmStatus)
	if len(st.Signals) != 2 || st.Signals[1].Ignored != `spec.lifecycle.hooks has no hook "other" with at: Signal: declare it, or name another one` {
		t.Errorf("want the reason of what is refused, got %+v", st.Signals)
	}
	w.passes(2)
	if w.request.Observed[resource] == nil {
		t.Fatal("there is no Job")
	}
	delete(w.request.Observed, resource)
	left, _ := w.passes(3)
	if w.request.Observed[resource] != nil || len(left) != 1 || left[0].Hook.Result != v1alpha1.HookResultFailed {
		t.Errorf("a Job that was deleted is not made again, got %+v", left)
	}
}

// TestSignalHookOfARollout shows that a Signal runs no hook of another point, and that no rollout waits for one of a Signal.
func TestSignalHookOfARollout(t *testing.T) {
	w := hookWorld(t, "{name: smoke, at: BeforeTraffic, url: http://smoke.shop.svc}")
	w.signalled(asksFor("stale", "smoke"))
	if w.passes(2); w.request.Observed[names.HookPrefix+"smoke"] != nil {
		t.Error("a Signal runs a hook of a rollout")
	}
	r := hooked(t, "["+flushByHTTP+"]")
	for range 12 {
		r.rollOn('P')
	}
	if l := r.ledger(); l.Standing() == v1alpha1.RolloutPreparing || len(l.Hooks) > 0 {
		t.Errorf("the rollout is %s, with hooks %+v", l.Standing(), l.Hooks)
	}
}
