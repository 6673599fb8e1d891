// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// hookAt a point, which ends in five minutes.
func hookAt(at v1alpha1.HookPoint, onFailure v1alpha1.RolloutHookFailure) v1alpha1.RolloutHook {
	return v1alpha1.RolloutHook{Name: "h", At: at, URL: "http://h", OnFailure: onFailure, Timeout: metav1.Duration{Duration: 5 * time.Minute}}
}

// runAt a point that began so long ago, with a result.
func runAt(at v1alpha1.HookPoint, ago time.Duration, result v1alpha1.HookResult) HookRun {
	return HookRun{Name: "h", At: at, Revision: candidate, Attempt: 3, Slot: names.SlotB, Started: now.Add(-ago), Result: result}
}

func TestHookRules(t *testing.T) {
	type decision struct {
		Phase  v1alpha1.RolloutPhase
		Reason xpv2.ConditionReason
		Weight int32
		Hook   v1alpha1.HookResult
	}
	preparing := func(runs ...HookRun) Ledger {
		return ledger(v1alpha1.RolloutPreparing, func(l *Ledger) { l.Attempt, l.Hooks = 3, runs })
	}
	stepping := func(runs ...HookRun) Ledger {
		return ledger(v1alpha1.RolloutStepping, func(l *Ledger) {
			l.Attempt, l.Weight, l.Evidence, l.Hooks = 3, 20, 5, runs
			for i := range l.Hooks {
				l.Hooks[i].Weight = 20
			}
		})
	}
	baking := func(runs ...HookRun) Ledger {
		return ledger(v1alpha1.RolloutBaking, func(l *Ledger) {
			l.Attempt, l.Slot, l.Revision, l.Previous, l.Weight, l.Entered, l.Began, l.Hooks = 3, names.SlotB, candidate, live, 100, now, now, runs
		})
	}
	passing := Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: "PPP"}}}
	failing := Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: "PFF"}}}
	before, during, promotion := v1alpha1.HookBeforeTraffic, v1alpha1.HookDuringStep, v1alpha1.HookBeforePromotion
	hold, cont := v1alpha1.HookFailureHold, v1alpha1.HookFailureContinue
	passed, failed := v1alpha1.HookResultPassed, v1alpha1.HookResultFailed
	waits := decision{v1alpha1.RolloutPreparing, "", 0, ""}
	back := decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonHookFailed, 0, failed}
	cases := map[string]struct {
		reason string
		hook   v1alpha1.RolloutHook
		ledger Ledger
		facts  func(*Facts)
		want   decision
	}{
		"Starts":  {"it starts before any request reaches the candidate", hookAt(before, ""), preparing(), nil, waits},
		"Waits":   {"no request reaches the candidate while it runs", hookAt(before, ""), preparing(runAt(before, time.Minute, "")), nil, waits},
		"Silent":  {"without a result it has failed after its time", hookAt(before, ""), preparing(runAt(before, 7*time.Minute, "")), nil, back},
		"Passed":  {"the first share follows", hookAt(before, ""), preparing(runAt(before, time.Minute, passed)), nil, decision{v1alpha1.RolloutStepping, v1alpha1.ReasonPassed, 20, passed}},
		"Failed":  {"it rolls back by default", hookAt(before, ""), preparing(runAt(before, time.Minute, failed)), nil, back},
		"Holds":   {"it holds where the spec says so", hookAt(before, hold), preparing(runAt(before, time.Minute, failed)), nil, decision{v1alpha1.RolloutHolding, v1alpha1.ReasonHookFailed, 0, failed}},
		"Goes on": {"it is only reported where the spec says so", hookAt(before, cont), preparing(runAt(before, time.Minute, failed)), nil, decision{v1alpha1.RolloutStepping, v1alpha1.ReasonPassed, 20, failed}},
		"Stopped": {
			"clients are refused meanwhile, so that it does not hold", hookAt(before, hold), preparing(runAt(before, time.Minute, failed)),
			func(f *Facts) { f.Ledger.Stopped = true }, back,
		},
		"Promoted": {
			"a person who promotes does not wait for it", hookAt(before, ""), preparing(runAt(before, time.Minute, "")),
			func(f *Facts) { f.Requests.Promote, f.Ledger.Hooks = candidate, nil },
			decision{v1alpha1.RolloutPreparing, "", 0, ""},
		},
		"Removed": {
			"a hook that the spec does not have any more holds nothing", hookAt(before, ""), preparing(runAt(before, time.Minute, failed)),
			func(f *Facts) { f.Lifecycle.Hooks = nil },
			decision{v1alpha1.RolloutStepping, v1alpha1.ReasonPassed, 20, ""},
		},
		"AllAtOnce": {
			"the first share may be all requests", hookAt(promotion, ""), preparing(),
			func(f *Facts) {
				f.Lifecycle.CanaryWeight = new(int32(100))
				f.Slots[names.SlotB] = running(f.Slots[names.SlotA], candidate)
			},
			decision{v1alpha1.RolloutPreparing, "", 0, ""},
		},
		"Step":        {"it begins with the share", hookAt(during, ""), stepping(), func(f *Facts) { f.Evidence = Evidence{Asked: true, LookedAt: now} }, decision{v1alpha1.RolloutStepping, "", 20, ""}},
		"StepWaits":   {"the next share waits for it", hookAt(during, ""), stepping(runAt(during, time.Minute, "")), func(f *Facts) { f.Evidence = passing }, decision{v1alpha1.RolloutStepping, "", 20, ""}},
		"StepFails":   {"evidence that fails does not wait for it", hookAt(during, ""), stepping(runAt(during, time.Minute, "")), func(f *Facts) { f.Evidence = failing }, decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonMetricFailed, 0, ""}},
		"StepFailed":  {"it fails a step", hookAt(during, ""), stepping(runAt(during, time.Minute, failed)), func(f *Facts) { f.Evidence = passing }, back},
		"StepHolds":   {"the share stays", hookAt(during, hold), stepping(runAt(during, time.Minute, failed)), func(f *Facts) { f.Evidence = passing }, decision{v1alpha1.RolloutHolding, v1alpha1.ReasonHookFailed, 20, failed}},
		"Promotes":    {"it starts once the evidence passes", hookAt(promotion, ""), stepping(), func(f *Facts) { f.Evidence = passing }, decision{v1alpha1.RolloutStepping, "", 20, ""}},
		"NotYet":      {"it does not start before the evidence passes", hookAt(promotion, ""), stepping(), nil, decision{v1alpha1.RolloutStepping, "", 20, ""}},
		"NoPromotion": {"all requests wait for it", hookAt(promotion, ""), stepping(runAt(promotion, time.Minute, failed)), func(f *Facts) { f.Evidence = passing }, back},
		"WithoutData": {"it is not left out for want of data", hookAt(promotion, ""), stepping(runAt(promotion, time.Minute, failed)), func(f *Facts) {
			f.Lifecycle.OnNoData, f.Ledger.Began = v1alpha1.NoDataContinue, now.Add(-2*time.Hour)
			f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: "I"}}}
		}, back},
		"After":       {"it starts when all requests reach the candidate, and nothing waits for it", hookAt(v1alpha1.HookAfterPromotion, ""), baking(), nil, decision{v1alpha1.RolloutBaking, "", 100, ""}},
		"AfterFailed": {"its failure undoes nothing", hookAt(v1alpha1.HookAfterPromotion, ""), baking(runAt(v1alpha1.HookAfterPromotion, time.Minute, failed)), nil, decision{v1alpha1.RolloutBaking, "", 100, failed}},
		"AfterRollback": {
			"it starts when requests go back", hookAt(v1alpha1.HookAfterRollback, ""),
			ledger(v1alpha1.RolloutRollingBack, func(l *Ledger) { l.Attempt = 3; l.Entered = now }), func(f *Facts) { f.Target = live },
			decision{v1alpha1.RolloutRollingBack, "", 0, ""},
		},
	}
	started := map[string]bool{
		"Starts": true, "Waits": true, "AllAtOnce": true, "Step": true, "StepWaits": true, "Promotes": true, "After": true, "AfterRollback": true,
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Ledger = tc.ledger
			f.Lifecycle.Hooks = []v1alpha1.RolloutHook{tc.hook}
			if tc.facts != nil {
				tc.facts(&f)
			}
			o := advance(f, f.Ledger)
			got := decision{Phase: o.Ledger.Phase, Reason: o.Ledger.Reason, Weight: o.Ledger.Weight}
			runs := false
			if n := len(o.Ledger.Hooks); n > 0 {
				got.Hook, runs = o.Ledger.Hooks[n-1].Result, o.Ledger.Hooks[n-1].Runs()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, o.Message)
			}
			if runs != started[name] {
				t.Errorf("%s: a hook runs: %t, want %t: %+v", tc.reason, runs, started[name], o.Ledger.Hooks)
			}
			if runs && o.wake.IsZero() {
				t.Errorf("%s: nothing ends the wait", tc.reason)
			}
		})
	}
}

// TestHookResults are what becomes of a run by what is observed of it.
func TestHookResults(t *testing.T) {
	job := hookAt(v1alpha1.HookBeforeTraffic, "")
	job.URL, job.Job = "", &v1alpha1.HookContainer{Image: "x", Core: corev1.Container{Image: "x"}}
	cases := map[string]struct {
		hook v1alpha1.RolloutHook
		ago  time.Duration
		was  bool
		seen HookSeen
		want v1alpha1.HookResult
		tell string
	}{
		"Running":      {hookAt(v1alpha1.HookBeforeTraffic, ""), time.Minute, false, HookSeen{}, "", ""},
		"Passed":       {hookAt(v1alpha1.HookBeforeTraffic, ""), time.Minute, false, HookSeen{Done: true, Passed: true}, v1alpha1.HookResultPassed, ""},
		"Refused":      {hookAt(v1alpha1.HookBeforeTraffic, ""), time.Minute, false, HookSeen{Done: true, Message: "404"}, v1alpha1.HookResultFailed, "404"},
		"Grace":        {hookAt(v1alpha1.HookBeforeTraffic, ""), 330 * time.Second, false, HookSeen{}, "", ""},
		"Silent":       {hookAt(v1alpha1.HookBeforeTraffic, ""), 6 * time.Minute, false, HookSeen{}, v1alpha1.HookResultFailed, "provider"},
		"JobRuns":      {job, time.Minute, true, HookSeen{Job: true}, "", ""},
		"JobNotYet":    {job, time.Minute, false, HookSeen{}, "", ""},
		"JobGone":      {job, time.Minute, true, HookSeen{}, v1alpha1.HookResultFailed, "deleted"},
		"JobRefused":   {job, 6 * time.Minute, false, HookSeen{}, v1alpha1.HookResultFailed, "created"},
		"JobStands":    {job, 6 * time.Minute, true, HookSeen{Job: true}, v1alpha1.HookResultFailed, "did not end"},
		"JobSucceeded": {job, 6 * time.Minute, true, HookSeen{Job: true, Done: true, Passed: true}, v1alpha1.HookResultPassed, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.SendsHooks = true
			r := runAt(v1alpha1.HookBeforeTraffic, tc.ago, "")
			r.Seen = tc.was
			f.Hooks = HooksSeen{r.Key(): tc.seen}
			got := r.seen(f, tc.hook)
			if got.Result != tc.want || !strings.Contains(got.Message, tc.tell) {
				t.Errorf("got %q %q, want %q and %q", got.Result, got.Message, tc.want, tc.tell)
			}
		})
	}
}

// TestOneHookAtATime also over attempts: clean-up of the one before ends first, and what waits for it longer is replaced.
func TestOneHookAtATime(t *testing.T) {
	f := facts()
	clean := hookAt(v1alpha1.HookAfterRollback, "")
	clean.Name = "clean"
	f.Lifecycle.Hooks = []v1alpha1.RolloutHook{hookAt(v1alpha1.HookBeforeTraffic, ""), clean}
	old := HookRun{Name: "clean", At: v1alpha1.HookAfterRollback, Revision: live, Attempt: 1, Started: now.Add(-time.Minute)}
	l := ledger(v1alpha1.RolloutPreparing, func(l *Ledger) { l.Attempt, l.Hooks = 3, []HookRun{old} })
	f.Ledger = l
	o := advance(f, l)
	if len(o.Ledger.Hooks) != 1 || !strings.Contains(o.Message, "one before it") {
		t.Errorf("the hook starts although another one runs: %s %+v", o.Message, o.Ledger.Hooks)
	}
	l = ledger(v1alpha1.RolloutRollingBack, func(l *Ledger) {
		waiting := old
		waiting.Attempt, waiting.Started = 2, time.Time{}
		l.Attempt, l.Entered, l.Hooks = 3, now, []HookRun{old, waiting}
	})
	f.Target, f.Ledger = live, l
	o = advance(f, l)
	var attempts []int64
	for _, r := range o.Ledger.Hooks {
		attempts = append(attempts, r.Attempt)
	}
	if diff := cmp.Diff([]int64{1, 3}, attempts); diff != "" {
		t.Errorf("-want, +got attempts:\n%s", diff)
	}
}

// TestNotices are told in order, never more than there is room for, and none stands for ever.
func TestNotices(t *testing.T) {
	f := facts()
	tell := hookAt(v1alpha1.HookTransition, "")
	f.Lifecycle.Hooks = []v1alpha1.RolloutHook{tell}
	events := func(l Ledger) (events []NoticeEvent) {
		for _, n := range l.Notices {
			events = append(events, n.Event)
		}
		return events
	}
	l := ledger(v1alpha1.RolloutStable, nil)
	l = advance(f, l).Ledger
	l = advance(f, l).Ledger // the first share
	f.Target = live
	l = advance(f, l).Ledger
	if diff := cmp.Diff([]NoticeEvent{NoticeStarted, NoticeRolledBack}, events(l)); diff != "" {
		t.Fatalf("-want, +got events:\n%s", diff)
	}
	f.Hooks = HooksSeen{NoticeKey("h", l.Notices[0]): {Done: true, Passed: true}, NoticeKey("h", l.Notices[1]): {Done: true, Message: "410"}}
	told := l.noticed(f)
	if len(told.Notices) != 0 || !strings.Contains(told.Unheard, "410") {
		t.Errorf("got %v, %q", told.Notices, told.Unheard)
	}
	f.Hooks = nil
	f.Now = now.Add(36 * time.Minute)
	if late := l.noticed(f); len(late.Notices) != 0 || late.Unheard == "" {
		t.Errorf("notices stand for ever: %v, %q", late.Notices, late.Unheard)
	}
	for range 2 * mostNotices {
		l = Outcome{Ledger: l}.after(f, hold(l, v1alpha1.RolloutStepping, "X"+l.Reason, "")).Ledger
	}
	if len(l.Notices) != mostNotices || l.Unheard == "" {
		t.Errorf("got %d notices, and %q", len(l.Notices), l.Unheard)
	}
}
