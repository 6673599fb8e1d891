// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// hooked world: one revision serves, and another one is asked for, with hooks.
func hooked(tb testing.TB, hooks string) *world {
	tb.Helper()
	const spec = "{image: %s, replicas: 4, lifecycle: {soak: 1m, bake: 5m, deadline: 20m, canaryWeight: 50, hooks: %s}}"
	w := newWorld(tb, fmt.Sprintf(spec, "x", hooks))
	w.request.Kinds[observev1alpha1.HookGroupVersionKind] = compose.Available
	for range 3 {
		w.rollOn('P')
	}
	w.edit(fmt.Sprintf(spec, "z", hooks))
	return w
}

// rollOn for a pass and ten seconds, with a look at the candidate.
func (w *world) rollOn(letter byte) rollout.Ledger {
	w.t.Helper()
	p := w.plan()
	w.compose(p)
	w.told(p)
	for _, slot := range names.Slots {
		if w.occupied(slot) {
			w.runIn(slot, nil)
		}
	}
	w.later(10 * time.Second)
	if asked := w.canaryAsked(); asked != nil {
		c := &observev1alpha1.CanaryObservation{Epoch: compose.Number(asked, 0, "epoch"), Looks: 3}
		c.StartedAt.Time, c.LookedAt.Time = w.request.Now, w.request.Now
		for _, v := range compose.List(asked, "checks") {
			c.Checks = append(c.Checks, observev1alpha1.CanaryCheck{
				Name: compose.Text(v.(map[string]any), "name"), Verdicts: strings.Repeat(string(letter), 3),
			})
		}
		w.measure(observev1alpha1.AnalysisObservation{Canary: c})
	}
	return w.ledger()
}

// ledger as the Service has it.
func (w *world) ledger() rollout.Ledger {
	l, _ := rollout.ParseLedger(ledgerText(w.request.Observed[names.Service]))
	return l
}

// answer the requests of a Hook as the provider does, and return what it sent.
func (w *world) answer(hook string, outcome observev1alpha1.HookOutcome) []map[string]any {
	w.t.Helper()
	resource := names.HookPrefix + hook
	if w.request.Observed[resource] == nil {
		return nil
	}
	var bodies []map[string]any
	w.change(resource, func(o composetest.Object) {
		var results []any
		for _, v := range compose.List(o, "spec", "forProvider", "requests") {
			r := v.(map[string]any)
			body := map[string]any{}
			if err := json.Unmarshal([]byte(compose.Text(r, "body")), &body); err != nil {
				w.t.Fatal(err)
			}
			bodies = append(bodies, body)
			results = append(results, map[string]any{"key": r["key"], "result": string(outcome), "message": "m", "at": w.request.Now.Format(time.RFC3339)})
		}
		o["status"] = map[string]any{"atProvider": map[string]any{"results": results}}
	})
	return bodies
}

// TestHookGatesTraffic from the first pass to the first share.
func TestHookGatesTraffic(t *testing.T) {
	w := hooked(t, "[{name: smoke, at: BeforeTraffic, url: http://smoke.shop.svc}]")
	var l rollout.Ledger
	for range 12 {
		before := w.ledger()
		l = w.rollOn('P')
		if w.request.Observed[names.HookPrefix+"smoke"] != nil && len(before.Hooks) == 0 {
			t.Fatal("the hook is sent before anything remembers it")
		}
	}
	if l.Standing() != v1alpha1.RolloutPreparing || len(l.Hooks) != 1 || !l.Hooks[0].Runs() {
		t.Fatalf("without an answer, it is %s, and hooks are %+v", l.Standing(), l.Hooks)
	}
	bodies := w.answer("smoke", observev1alpha1.HookPassed)
	if len(bodies) != 1 || bodies[0]["candidateURL"] != "http://reco-slot-b.shop.svc" || bodies[0]["revision"] != l.Candidate || bodies[0]["weight"] != 0.0 {
		t.Errorf("it gets %v", bodies)
	}
	for range 6 {
		l = w.rollOn('P')
	}
	if l.Standing() != v1alpha1.RolloutStepping || l.Weight != 50 {
		t.Errorf("after it has passed, it is %s at %d %%", l.Standing(), l.Weight)
	}
	if w.request.Observed[names.HookPrefix+"smoke"] != nil {
		t.Error("what has been sent stays for ever")
	}
}

// TestHookFailureIsTold in status, events and the condition, for what rolls back and for what only tells.
func TestHookFailureIsTold(t *testing.T) {
	w := hooked(t, "[{name: gate, at: BeforePromotion, url: http://gate.shop.svc}, {name: clean, at: AfterRollback, url: http://clean.shop.svc}]")
	var events []string
	for range 40 {
		p := w.plan()
		for _, e := range p.Events {
			events = append(events, e.Message)
		}
		w.rollOn('P')
		w.answer("gate", observev1alpha1.HookRefused)
		w.answer("clean", observev1alpha1.HookUnreachable)
	}
	l := w.ledger()
	if l.Phase != v1alpha1.RolloutRolledBack || len(l.Failed) != 1 || l.Failed[0].Reason != string(v1alpha1.ReasonHookFailed) {
		t.Errorf("it is %s, failed are %+v", l.Phase, l.Failed)
	}
	if !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, `hook "gate"`) }) {
		t.Errorf("no event names the hook: %q", events)
	}
	c := condition(w.plan(), v1alpha1.TypeHooksPassed)
	if c.Status != corev1.ConditionFalse || c.Reason != v1alpha1.ReasonHookFailed {
		t.Errorf("the condition is %v %v %q", c.Status, c.Reason, c.Message)
	}
	if st := rolloutOf(t, w.plan()); len(st.Hooks) != 2 || st.Hooks[1].Result != v1alpha1.HookResultFailed {
		t.Errorf("the status has %+v", st.Hooks)
	}
}

// TestHookJob runs once, is never made again, and stays for its log.
func TestHookJob(t *testing.T) {
	jobs := func(w *world) (found []string) {
		for resource := range w.request.Observed {
			if strings.HasPrefix(resource, names.HookJobPrefix) {
				found = append(found, resource)
			}
		}
		return found
	}
	begun := func() (*world, string) {
		w := hooked(t, "[{name: load, at: BeforeTraffic, job: {image: l, args: [a]}, timeout: 2m}]")
		for range 12 {
			w.rollOn('P')
		}
		found := jobs(w)
		if len(found) != 1 {
			t.Fatalf("got Jobs %v", found)
		}
		return w, found[0]
	}
	w, job := begun()
	o := w.request.Observed[job].Map()
	pod := compose.Map(o, "spec", "template")
	if compose.Text(pod, "metadata", "labels", names.LabelHookOf) != "reco" || compose.Map(pod, "metadata", "labels")[names.LabelAlgorithm] != nil {
		t.Errorf("the Service would select its pod: %v", compose.Map(pod, "metadata", "labels"))
	}
	if compose.Text(pod, "spec", "serviceAccountName") != "reco" || compose.Number(o, 0, "spec", "activeDeadlineSeconds") != 120 {
		t.Errorf("got %v", compose.Map(o, "spec"))
	}
	w.change(job, func(o composetest.Object) {
		o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	})
	for range 6 {
		w.rollOn('P')
	}
	if l := w.ledger(); l.Weight != 50 || len(jobs(w)) != 1 {
		t.Errorf("the weight is %d, Jobs are %v", l.Weight, jobs(w))
	}
	delete(w.request.Observed, job)
	w.rollOn('P')
	if found := jobs(w); len(found) > 0 {
		t.Errorf("a Job that has ended runs again: %v", found)
	}

	// One that is deleted while it runs has failed.
	w, job = begun()
	w.rollOn('P')
	delete(w.request.Observed, job)
	w.rollOn('P')
	w.rollOn('P')
	if l := w.ledger(); len(l.Failed) != 1 || !strings.Contains(l.Failed[0].Message, "deleted") || len(jobs(w)) != 0 {
		t.Errorf("failed are %+v, Jobs are %v", l.Failed, jobs(w))
	}
}

// TestNotificationsAreDelivered in their order, and forgotten.
func TestNotificationsAreDelivered(t *testing.T) {
	w := hooked(t, "[{name: chat, at: Transition, secretName: chat}]")
	var got []string
	for range 70 {
		w.rollOn('P')
		known := map[string]bool{}
		for _, e := range got {
			known[e] = true
		}
		for _, b := range w.answer("chat", observev1alpha1.HookPassed) {
			if text, _ := b["text"].(string); !strings.Contains(text, "shop/reco") {
				t.Errorf("a chat shows %q", text)
			}
			if e, _ := b["event"].(string); !known[e] {
				got, known[e] = append(got, e), true
			}
		}
	}
	if want := []string{"Started", "Promoted", "Ended"}; !slices.Equal(want, got) {
		t.Errorf("want %q, got %q", want, got)
	}
	if l := w.ledger(); len(l.Notices) > 0 || l.Standing() != v1alpha1.RolloutStable {
		t.Errorf("in %s, %v are left", l.Standing(), l.Notices)
	}
}

// TestHookSpecs that are refused, and what of them is told.
func TestHookSpecs(t *testing.T) {
	for name, tc := range map[string]struct{ hooks, want string }{
		"LinkLocal":  {"[{name: a, at: BeforeTraffic, url: 'http://[fe80::1]/'}]", "must not be an address of a node"},
		"Mapped":     {"[{name: a, at: BeforeTraffic, url: 'http://[::ffff:127.0.0.1]/'}]", "must not be an address of a node"},
		"Metadata":   {"[{name: a, at: BeforeTraffic, url: 'http://169.254.169.254/latest'}]", "must not be an address of a node"},
		"APIServer":  {"[{name: a, at: BeforeTraffic, url: 'https://kubernetes.default.svc/'}]", "must not be an address of a node"},
		"Localhost":  {"[{name: a, at: BeforeTraffic, url: 'http://localhost:8080'}]", "must not be an address of a node"},
		"Both":       {"[{name: a, at: BeforeTraffic, url: 'http://a', job: {image: x}}]", "set either job"},
		"Nothing":    {"[{name: a, at: BeforeTraffic}]", "set either job"},
		"JobTold":    {"[{name: a, at: Transition, job: {image: x}}]", "only HTTP requests"},
		"Undo":       {"[{name: a, at: AfterPromotion, url: 'http://a', onFailure: Rollback}]", "only reported"},
		"Privileged": {"[{name: a, at: BeforeTraffic, job: {image: x, securityContext: {privileged: true}}}]", "Pod Security Standard"},
		"Unknown":    {"[{name: a, at: BeforeTraffic, job: {image: x, comand: [a]}}]", "comand"},
		"Mounts":     {"[{name: a, at: BeforeTraffic, job: {image: x, volumeMounts: [{name: a, mountPath: /a}]}}]", "volumeMounts"},
		"Reserved":   {"[{name: a, at: BeforeTraffic, job: {image: x, env: [{name: CAPSTAN_HOOK_KEY, value: a}]}}]", "choose another name"},
	} {
		t.Run(name, func(t *testing.T) {
			c := condition(newWorld(t, "{image: x, lifecycle: {hooks: "+tc.hooks+"}}").plan(), v1alpha1.TypeAccepted)
			if c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, tc.want) || !strings.Contains(c.Message, "spec.lifecycle.hooks") {
				t.Errorf("want %q, got %s %q", tc.want, c.Status, c.Message)
			}
		})
	}
}

// TestHookProperties lets hooks pass, fail and never answer, in any order, while writes get lost. Nothing stands for ever but a hold
// that the spec asks for, no request reaches a candidate before its hooks have passed, and a hook has one key.
func TestHookProperties(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		points := []string{"BeforeTraffic", "DuringStep", "BeforePromotion", "AfterPromotion", "AfterRollback", "Transition"}
		var specs []string
		fate := map[string]observev1alpha1.HookOutcome{}
		holds, gated, silent := false, false, false
		for i := range 1 + r.IntN(5) {
			at := points[r.IntN(len(points))]
			h := fmt.Sprintf("{name: h%d, at: %s, url: http://h, timeout: 3m", i, at)
			on := []string{"", "Rollback", "Hold", "Continue"}[r.IntN(4)]
			if gates := slices.Index(points, at) < 3; gates && on != "" {
				h += ", onFailure: " + on
			}
			specs = append(specs, h+"}")
			outcome := []observev1alpha1.HookOutcome{observev1alpha1.HookPassed, observev1alpha1.HookPassed, observev1alpha1.HookRefused, ""}[r.IntN(4)]
			fate[fmt.Sprintf("h%d", i)] = outcome
			bad := outcome != observev1alpha1.HookPassed && slices.Index(points, at) < 3
			silent = silent || outcome == "" && at == "Transition"
			holds = holds || bad && on == "Hold"
			gated = gated || bad && on != "Continue"
		}
		w := hooked(t, "["+strings.Join(specs, ", ")+"]")
		keys := map[string]map[string]bool{}
		var l rollout.Ledger
		for range 130 {
			before := w.request.Observed
			l = w.rollOn('P')
			w.later(20 * time.Second)
			if r.IntN(6) == 0 && before[names.Service] != nil {
				// The Service was not written, and everything else was.
				w.request.Observed = maps.Clone(w.request.Observed)
				w.request.Observed[names.Service] = before[names.Service]
			}
			for hook, outcome := range fate {
				for _, b := range w.answerIf(hook, outcome) {
					at, _ := b["at"].(string)
					if keys[hook] == nil {
						keys[hook] = map[string]bool{}
					}
					if at != "Transition" {
						keys[hook][b["key"].(string)] = true
					}
				}
			}
			for _, run := range l.Hooks {
				if unpassed := run.Result == "" && run.At == v1alpha1.HookBeforeTraffic && run.Revision == l.Candidate; unpassed && l.Weight > 0 {
					t.Fatalf("seed %d: %d %% of requests reach the candidate before %s: %s", seed, l.Weight, run.Name, specs)
				}
			}
		}
		for hook, of := range keys {
			if len(of) > 1 {
				t.Errorf("seed %d: hook %s has keys %v: %s", seed, hook, of, specs)
			}
		}
		held := l.Phase == v1alpha1.RolloutHolding && l.Reason == v1alpha1.ReasonHookFailed
		switch {
		case len(l.Notices) > 0 && !silent:
			t.Errorf("seed %d: notices stand: %v", seed, l.Notices)
		case held && holds, l.Phase == v1alpha1.RolloutRolledBack && gated, l.Standing() == v1alpha1.RolloutStable && l.Phase != v1alpha1.RolloutHolding && !gated:
		default:
			t.Errorf("seed %d: it ends in %s %s (held %s) with %+v: %s %v", seed, l.Phase, l.Reason, l.Held, l.Hooks, specs, fate)
		}
	}
}

// answerIf the provider ever answers.
func (w *world) answerIf(hook string, outcome observev1alpha1.HookOutcome) []map[string]any {
	if outcome == "" {
		return nil
	}
	return w.answer(hook, outcome)
}
