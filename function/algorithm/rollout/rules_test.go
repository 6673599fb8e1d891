// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/observed"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const (
	live      = "1111111111"
	candidate = "2222222222"
)

// facts of two revisions that serve, with enough replicas to share requests by their number.
func facts() Facts {
	serves := func(revision string, n int64) Slot {
		return Slot{Revision: revision, Deployment: observed.Deployment{
			Exists: true, Noticed: true, Size: n, Total: n, Updated: n, Ready: n, Available: n,
		}}
	}
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	return Facts{
		Now: now, Name: "reco", Target: candidate, Replicas: 4, ByReplicas: true, Drain: time.Minute, Selects: names.SlotA,
		Slots:    map[string]Slot{names.SlotA: serves(live, 4), names.SlotB: serves(candidate, 1)},
		Observes: true, Interval: time.Hour, Rehearsal: Rehearsal{Done: true},
		Lifecycle: &v1alpha1.Lifecycle{
			CanaryWeight: new(int32(20)), Soak: duration(time.Minute), Deadline: duration(time.Hour), Bake: duration(time.Minute),
			OnNoData: v1alpha1.NoDataHold, Approval: v1alpha1.ApprovalNone,
		},
	}
}

// ledger in a phase, which began ten minutes ago.
func ledger(phase v1alpha1.RolloutPhase, change func(*Ledger)) Ledger {
	began := now.Add(-10 * time.Minute)
	l := Ledger{Slot: names.SlotA, Revision: live, Candidate: candidate, Phase: phase, Epoch: 5, Entered: began, Began: began}
	if change != nil {
		change(&l)
	}
	return l
}

func TestRules(t *testing.T) {
	baking := ledger(v1alpha1.RolloutBaking, func(l *Ledger) {
		l.Slot, l.Revision, l.Previous, l.Weight, l.Evidence = names.SlotB, candidate, live, 100, 5
	})
	// lost all replicas of the candidate a while ago.
	lost := func(ago time.Duration) Ledger {
		return ledger(v1alpha1.RolloutHolding, func(l *Ledger) {
			l.Held, l.Reason, l.Next, l.Entered = v1alpha1.RolloutStepping, v1alpha1.ReasonNotServing, 20, now.Add(-ago)
		})
	}
	// seen for the last time so long after the end of the bake.
	seen := func(after time.Duration) func(*Facts) {
		return func(f *Facts) {
			f.Evidence = Evidence{Asked: true, LookedAt: baking.Began.Add(f.Lifecycle.Bake.Duration + after), LooksUntil: now.Add(time.Minute)}
		}
	}
	type decision struct {
		Phase  v1alpha1.RolloutPhase
		Reason xpv2.ConditionReason
		Weight int32
		Epoch  int64
	}
	cases := map[string]struct {
		reason string
		ledger Ledger
		facts  func(*Facts)
		want   decision
	}{
		"Begins": {
			reason: "another revision is requested",
			ledger: ledger(v1alpha1.RolloutStable, nil),
			want:   decision{v1alpha1.RolloutPreparing, v1alpha1.ReasonEdited, 0, 6},
		},
		"Rests": {
			reason: "what is requested is live",
			ledger: ledger(v1alpha1.RolloutStable, nil), facts: func(f *Facts) { f.Target = live },
			want: decision{v1alpha1.RolloutStable, "", 0, 5},
		},
		"FirstShare": {
			reason: "the candidate is large enough for its first share",
			ledger: ledger(v1alpha1.RolloutPreparing, nil),
			want:   decision{v1alpha1.RolloutStepping, v1alpha1.ReasonPassed, 20, 6},
		},
		"LeastShare": {
			reason: "one replica is the least share",
			ledger: ledger(v1alpha1.RolloutPreparing, nil), facts: func(f *Facts) { f.Lifecycle.CanaryWeight = new(int32(5)) },
			want: decision{v1alpha1.RolloutStepping, v1alpha1.ReasonPassed, 5, 6},
		},
		"SingleReplica": {
			reason: "one replica beside a single one would have half of the requests",
			ledger: ledger(v1alpha1.RolloutPreparing, nil), facts: func(f *Facts) {
				s := f.Slots[names.SlotA]
				s.Size, s.Total, s.Updated, s.Ready, s.Available, f.Replicas = 1, 1, 1, 1, 1, 1
				f.Slots[names.SlotA] = s
			},
			want: decision{v1alpha1.RolloutPromoting, v1alpha1.ReasonPassed, 100, 6},
		},
		"NotInForce": {
			reason: "the Service does not select the candidate yet",
			ledger: ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight = 20 }),
			want:   decision{v1alpha1.RolloutStepping, "", 20, 5},
		},
		"Fails": {
			reason: "two looks in a row fail",
			ledger: ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Evidence = 20, 5 }),
			facts: func(f *Facts) {
				f.Evidence = Evidence{Asked: true, Checks: []Check{{Name: "success", Verdicts: "PFF"}}}
			},
			want: decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonMetricFailed, 0, 6},
		},
		"Promotes": {
			reason: "the evidence passes and there is no greater step",
			ledger: ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Evidence = 20, 5 }),
			facts: func(f *Facts) {
				f.Observes, f.Interval = true, time.Hour
				f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: "PPP"}}}
			},
			want: decision{v1alpha1.RolloutStepping, v1alpha1.ReasonPassed, 20, 6},
		},
		"ClockIsBack": {
			reason: "time has no part in that the spec withdraws a candidate",
			ledger: ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Entered = 20, now.Add(time.Minute) }),
			facts:  func(f *Facts) { f.Target = live },
			want:   decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonReverted, 0, 6},
		},
		"ClockIsBackAtRest": {
			reason: "all else waits for the time to come again",
			ledger: ledger(v1alpha1.RolloutStable, func(l *Ledger) { l.Entered = now.Add(time.Minute) }),
			want:   decision{v1alpha1.RolloutStable, "", 0, 5},
		},
		"TakenBack": {
			reason: "the spec asks for the revision before",
			ledger: ledger(v1alpha1.RolloutBaking, func(l *Ledger) {
				l.Slot, l.Revision, l.Previous, l.Weight = names.SlotB, candidate, live, 100
			}),
			facts: func(f *Facts) { f.Target = live },
			want:  decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonReverted, 0, 6},
		},
		"Baked": {
			reason: "the time to bake is over",
			ledger: ledger(v1alpha1.RolloutBaking, func(l *Ledger) {
				l.Slot, l.Revision, l.Previous, l.Weight = names.SlotB, candidate, live, 100
			}),
			want: decision{v1alpha1.RolloutDraining, v1alpha1.ReasonBaked, 100, 6},
		},
		"BakedUnseen": {
			reason: "the last look was before its end",
			ledger: baking,
			facts:  seen(-time.Second),
			want:   decision{v1alpha1.RolloutBaking, "", 100, 5},
		},
		"BakedSeen": {
			reason: "a look at its end shows nothing against it",
			ledger: baking,
			facts:  seen(0),
			want:   decision{v1alpha1.RolloutDraining, v1alpha1.ReasonBaked, 100, 6},
		},
		"BakedFailing": {
			reason: "that look shows that it fails",
			ledger: baking,
			facts: func(f *Facts) {
				seen(0)(f)
				f.Evidence.Checks = []Check{{Name: "success", Verdicts: "PPPPFF"}}
			},
			want: decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonMetricFailed, 0, 6},
		},
		"ServesAgainAtOnce": {
			reason: "all replicas were lost less than a minute ago",
			ledger: lost(59 * time.Second),
			want:   decision{v1alpha1.RolloutHolding, v1alpha1.ReasonNotServing, 0, 5},
		},
		"ServesAgain": {
			reason: "replicas have a minute",
			ledger: lost(time.Minute),
			want:   decision{v1alpha1.RolloutStepping, v1alpha1.ReasonResumed, 20, 6},
		},
		"ServesAgainPromoted": {
			reason: "a person who promotes it does not wait",
			ledger: lost(time.Second),
			facts: func(f *Facts) {
				s := f.Slots[names.SlotA]
				s.Revision = candidate
				f.Requests.Promote, f.Slots[names.SlotB] = candidate, s
			},
			want: decision{v1alpha1.RolloutPromoting, v1alpha1.ReasonResumed, 100, 6},
		},
		"BakedByPromise": {
			reason: "a person who promotes it does not wait for a look",
			ledger: baking,
			facts: func(f *Facts) {
				seen(-time.Second)(f)
				f.Requests.Promote = candidate
			},
			want: decision{v1alpha1.RolloutDraining, v1alpha1.ReasonBaked, 100, 6},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := facts()
			if tc.facts != nil {
				tc.facts(&f)
			}
			f.Ledger = tc.ledger
			l := advance(f, tc.ledger).Ledger
			if diff := cmp.Diff(tc.want, decision{l.Phase, l.Reason, l.Weight, l.Epoch}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBakeSeenEarly: the provider's clock is ahead, so that its look at the end comes before the end. The bake ends on time.
func TestBakeSeenEarly(t *testing.T) {
	f := facts()
	l := ledger(v1alpha1.RolloutBaking, func(l *Ledger) {
		l.Slot, l.Revision, l.Previous, l.Weight, l.Evidence = names.SlotB, candidate, live, 100, 5
		l.Began = now.Add(time.Second - f.Lifecycle.Bake.Duration)
	})
	end := now.Add(time.Second)
	f.Evidence, f.Ledger = Evidence{Asked: true, LookedAt: end, LooksUntil: now.Add(time.Hour)}, l
	if o := advance(f, l); o.Moved || !o.wake.Equal(end) {
		t.Errorf("want a pass at %s, got %s in phase %s", end, o.wake, o.Ledger.Standing())
	}
}

// TestForeseen: the pass of a transition reports what the next one would, so that no status changes with that one alone.
func TestForeseen(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		ledger  Ledger
		facts   func(*Facts)
		phase   v1alpha1.RolloutPhase
		message string
		wake    time.Time
	}{
		"Begins": {
			"replicas have a time to become ready", ledger(v1alpha1.RolloutStable, nil), func(f *Facts) { f.Slots[names.SlotB] = Slot{} },
			v1alpha1.RolloutPreparing, "replicas of revision 2222222222 start, and no request reaches it", now.Add(DownloadTime),
		},
		"FirstShare": {
			"the Gateway has a time to take the weight", ledger(v1alpha1.RolloutPreparing, nil), routed(100, 0, true),
			v1alpha1.RolloutStepping, "the Gateway has not applied the latest change of the route yet", now.Add(routeTimeout),
		},
		"InForce": {
			"a step has a deadline", ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight = 20 }), routed(80, 20, true),
			v1alpha1.RolloutStepping, "20 % of requests may reach revision 2222222222, and evidence is being gathered", now.Add(time.Hour),
		},
		"Bakes": {
			"a look at its end ends a bake", ledger(v1alpha1.RolloutPromoting, func(l *Ledger) {
				l.Slot, l.Revision, l.Previous, l.Weight, l.Evidence = names.SlotB, candidate, live, 100, 5
			}), func(f *Facts) { f.Selects = names.SlotB },
			v1alpha1.RolloutBaking, "all clients reach revision 2222222222, and revision 1111111111 stays so that they can go back",
			time.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			tc.facts(&f)
			f.Evidence, f.Ledger = Evidence{Asked: true}, tc.ledger
			o := advance(f, tc.ledger)
			if !o.Moved || o.Ledger.Standing() != tc.phase || o.Message != tc.message || !o.wake.Equal(tc.wake) {
				t.Fatalf("%s: want %s until %s: %q, got %s until %s: %q", tc.reason, tc.phase, tc.wake, tc.message, o.Ledger.Standing(), o.wake, o.Message)
			}
			f.Ledger = o.Ledger
			if s := f.Slots[names.SlotB]; !s.Exists {
				s.Exists, s.Size, s.Revision = true, 1, candidate
				f.Slots[names.SlotB] = s
			}
			next := advance(f, o.Ledger)
			if diff := cmp.Diff(o.Ledger, next.Ledger); diff != "" || next.Moved || next.Message != o.Message || !next.wake.Equal(o.wake) {
				t.Errorf("%s: the next pass should report the same, got until %s: %q, ledger -before, +after:\n%s", tc.reason, next.wake, next.Message, diff)
			}
		})
	}
}

// routed facts: a Gateway that serves the route sends so many percent of requests to each slot.
func routed(a, b int64, current bool) func(*Facts) {
	return func(f *Facts) {
		f.ByReplicas, f.HasRoute, f.Observes = false, true, true
		f.Route = observed.HTTPRoute{Exists: true, Known: true, Current: current, Served: true}
		for slot, weight := range map[string]int64{names.SlotA: a, names.SlotB: b} {
			s := f.Slots[slot]
			s.HasService, s.Routed.Named, s.Routed.Weight = true, true, weight
			f.Slots[slot] = s
		}
	}
}

// TestNothingStands shows that evidence comes before requests, and that every phase that waits holds at some time.
func TestNothingStands(t *testing.T) {
	type decision struct {
		Phase, Held v1alpha1.RolloutPhase
		Reason      xpv2.ConditionReason
		Weight      int32
		Failed      int
	}
	missing := func(f *Facts) { f.Rehearsal = Rehearsal{Done: true, Missing: "check success cannot be measured"} }
	onNoData := func(o v1alpha1.OnNoData) func(*Facts) { return func(f *Facts) { f.Lifecycle.OnNoData = o } }
	letters := func(letters string) func(*Facts) {
		return func(f *Facts) {
			f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: letters}}}
		}
	}
	long := now.Add(-2 * time.Hour)
	stepping := func(l *Ledger) { l.Weight, l.Evidence, l.Began = 20, 5, long }
	promoted := func(l *Ledger) { l.Slot, l.Revision, l.Previous, l.Weight = names.SlotB, candidate, live, 100 }
	left := func(l *Ledger) { l.Since = l.Entered }
	unavailable := func(l *Ledger) {
		l.Phase, l.Held, l.Reason, l.Weight, l.Evidence, l.Entered = v1alpha1.RolloutHolding, v1alpha1.RolloutStepping, v1alpha1.ReasonMetricsUnavailable, 20, 5, long
	}
	beforeFirst := func(l *Ledger) {
		l.Phase, l.Held, l.Reason, l.Entered = v1alpha1.RolloutHolding, v1alpha1.RolloutPreparing, v1alpha1.ReasonEvidenceMissing, long
	}
	awaiting := func(phase v1alpha1.RolloutPhase) func(*Ledger) {
		return func(l *Ledger) {
			l.Phase, l.Held, l.Reason, l.Since = v1alpha1.RolloutHolding, phase, v1alpha1.ReasonAwaitingRoute, l.Entered
		}
	}
	for name, tc := range map[string]struct {
		reason string
		phase  v1alpha1.RolloutPhase
		ledger func(*Ledger)
		facts  []func(*Facts)
		want   decision
	}{
		"NotTried": {
			reason: "no request reaches the candidate before its checks were tried",
			phase:  v1alpha1.RolloutPreparing, facts: []func(*Facts){func(f *Facts) { f.Rehearsal = Rehearsal{} }},
			want: decision{Phase: v1alpha1.RolloutPreparing},
		},
		"NeverTried": {
			reason: "a provider that does not ask is no reason to begin",
			phase:  v1alpha1.RolloutPreparing, facts: []func(*Facts){func(f *Facts) { f.Rehearsal, f.Interval = Rehearsal{}, time.Minute }},
			want: decision{Phase: v1alpha1.RolloutHolding, Held: v1alpha1.RolloutPreparing, Reason: v1alpha1.ReasonEvidenceMissing},
		},
		"NoProvider": {
			reason: "neither is one that is not there",
			phase:  v1alpha1.RolloutPreparing, facts: []func(*Facts){func(f *Facts) { f.Observes, f.Interval = false, time.Minute }},
			want: decision{Phase: v1alpha1.RolloutHolding, Held: v1alpha1.RolloutPreparing, Reason: v1alpha1.ReasonEvidenceMissing},
		},
		"Unmeasured": {
			reason: "what was scraped once only will be measured soon",
			phase:  v1alpha1.RolloutPreparing, facts: []func(*Facts){missing},
			want: decision{Phase: v1alpha1.RolloutPreparing},
		},
		"Unmeasurable": {
			reason: "what cannot be measured of the live revision would not be of the candidate",
			phase:  v1alpha1.RolloutPreparing, facts: []func(*Facts){missing, func(f *Facts) { f.Interval = time.Minute }},
			want: decision{Phase: v1alpha1.RolloutHolding, Held: v1alpha1.RolloutPreparing, Reason: v1alpha1.ReasonEvidenceMissing},
		},
		"UnmeasurablePromoted": {
			reason: "a person may do without",
			phase:  v1alpha1.RolloutPreparing, facts: []func(*Facts){missing, func(f *Facts) { f.Requests.Promote = candidate }, serving(4)},
			want: decision{Phase: v1alpha1.RolloutPromoting, Reason: v1alpha1.ReasonPassed, Weight: 100},
		},
		"MeasurableAgain": {
			reason: "it goes on by itself",
			phase:  v1alpha1.RolloutPreparing, ledger: beforeFirst,
			want: decision{Phase: v1alpha1.RolloutStepping, Reason: v1alpha1.ReasonPassed, Weight: 20},
		},
		"UnmeasurableHolds": {
			reason: "it does not begin blind after the deadline",
			phase:  v1alpha1.RolloutPreparing, ledger: beforeFirst, facts: []func(*Facts){missing},
			want: decision{Phase: v1alpha1.RolloutHolding, Held: v1alpha1.RolloutPreparing, Reason: v1alpha1.ReasonEvidenceMissing},
		},
		"UnmeasurableContinues": {
			reason: "unless the spec says so",
			phase:  v1alpha1.RolloutPreparing, ledger: beforeFirst, facts: []func(*Facts){missing, onNoData(v1alpha1.NoDataContinue)},
			want: decision{Phase: v1alpha1.RolloutStepping, Reason: v1alpha1.ReasonPassed, Weight: 20},
		},
		"UnmeasurableRollsBack": {
			reason: "or gives it up",
			phase:  v1alpha1.RolloutPreparing, ledger: beforeFirst, facts: []func(*Facts){missing, onNoData(v1alpha1.NoDataRollback)},
			want: decision{Phase: v1alpha1.RolloutRollingBack, Reason: v1alpha1.ReasonEvidenceMissing, Failed: 1},
		},
		"NothingKnown": {
			reason: "requests leave a candidate of which nothing was known for the deadline, and nothing is known against it",
			phase:  v1alpha1.RolloutStepping, ledger: stepping, facts: []func(*Facts){letters("NNNNENNNNN")},
			want: decision{Phase: v1alpha1.RolloutHolding, Held: v1alpha1.RolloutPreparing, Reason: v1alpha1.ReasonEvidenceMissing},
		},
		"NothingKnownAgain": {
			reason: "and do not return by themselves: the live revision was measurable all the time",
			phase:  v1alpha1.RolloutPreparing, ledger: func(l *Ledger) { beforeFirst(l); l.Unmeasured = true },
			want: decision{Phase: v1alpha1.RolloutHolding, Held: v1alpha1.RolloutPreparing, Reason: v1alpha1.ReasonEvidenceMissing},
		},
		"LittleKnown": {
			reason: "too few requests are known to be too few: a failure would be seen",
			phase:  v1alpha1.RolloutStepping, ledger: stepping, facts: []func(*Facts){letters("NNNIIIIIII")},
			want: decision{Phase: v1alpha1.RolloutHolding, Held: v1alpha1.RolloutStepping, Reason: v1alpha1.ReasonInconclusive, Weight: 20},
		},
		"MetricsGone": {
			reason: "without metrics for the deadline, nothing protects clients from the candidate",
			phase:  v1alpha1.RolloutStepping, ledger: unavailable, facts: []func(*Facts){letters("PPPPPPPEEE"), func(f *Facts) { f.Evidence.Errors = 3 }},
			want: decision{Phase: v1alpha1.RolloutHolding, Held: v1alpha1.RolloutPreparing, Reason: v1alpha1.ReasonEvidenceMissing},
		},
		"PromotingHolds": {
			reason: "the Gateway has not taken the route for ten minutes",
			phase:  v1alpha1.RolloutPromoting, ledger: promoted, facts: []func(*Facts){routed(0, 100, false), selects(names.SlotB)},
			want: decision{Phase: v1alpha1.RolloutHolding, Held: v1alpha1.RolloutPromoting, Reason: v1alpha1.ReasonAwaitingRoute, Weight: 100},
		},
		"PromotingFails": {
			reason: "requests may reach the candidate all the same, and its failures count",
			phase:  v1alpha1.RolloutPromoting, ledger: promoted, facts: []func(*Facts){routed(0, 100, false), selects(names.SlotB), letters("FF")},
			want: decision{Phase: v1alpha1.RolloutPreparing, Reason: v1alpha1.ReasonComparing},
		},
		"RollingBackHolds": {
			reason: "the Gateway may still send requests to what was rolled back",
			phase:  v1alpha1.RolloutRollingBack, ledger: left, facts: []func(*Facts){routed(100, 0, false)},
			want: decision{Phase: v1alpha1.RolloutHolding, Held: v1alpha1.RolloutRollingBack, Reason: v1alpha1.ReasonAwaitingRoute},
		},
		"DrainingHolds": {
			reason: "or to what drains",
			phase:  v1alpha1.RolloutDraining, ledger: left, facts: []func(*Facts){routed(100, 0, false), func(f *Facts) { f.Target = live }},
			want: decision{Phase: v1alpha1.RolloutHolding, Held: v1alpha1.RolloutDraining, Reason: v1alpha1.ReasonAwaitingRoute},
		},
		"DrainingGoesOn": {
			reason: "until it reports that it does not",
			phase:  v1alpha1.RolloutDraining, ledger: awaiting(v1alpha1.RolloutDraining), facts: []func(*Facts){routed(100, 0, true), func(f *Facts) { f.Target = live }},
			want: decision{Phase: v1alpha1.RolloutDraining, Reason: v1alpha1.ReasonResumed},
		},
		"SlotTakenHolds": {
			reason: "what is in its place cannot go while the Gateway may send requests there",
			phase:  v1alpha1.RolloutPreparing,
			ledger: func(l *Ledger) { l.Trouble, l.TroubleAt = v1alpha1.ReasonAwaitingRoute, l.Entered },
			facts:  []func(*Facts){routed(100, 0, false), func(f *Facts) { f.Slots[names.SlotB] = running(f.Slots[names.SlotB], "3333333333") }},
			want:   decision{Phase: v1alpha1.RolloutHolding, Held: v1alpha1.RolloutPreparing, Reason: v1alpha1.ReasonAwaitingRoute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			for _, modify := range tc.facts {
				modify(&f)
			}
			f.Ledger = ledger(tc.phase, tc.ledger)
			l := advance(f, f.Ledger).Ledger
			got := decision{l.Phase, l.Held, l.Reason, l.Weight, len(l.Failed)}
			if l.Phase == v1alpha1.RolloutPromoting || tc.want.Reason == "" {
				got.Reason = tc.want.Reason
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// selects a slot: the observed Service does.
func selects(slot string) func(*Facts) { return func(f *Facts) { f.Selects = slot } }

// serving so many replicas of the candidate.
func serving(n int64) func(*Facts) {
	return func(f *Facts) {
		s := f.Slots[names.SlotB]
		s.Size, s.Total, s.Updated, s.Ready, s.Available = n, n, n, n, n
		f.Slots[names.SlotB] = s
	}
}

// running another revision.
func running(s Slot, revision string) Slot {
	s.Revision = revision
	return s
}

// TestSmallerStep: a step that the spec gets while a candidate grows comes before what it grows for.
func TestSmallerStep(t *testing.T) {
	f := facts()
	routed(80, 20, true)(&f)
	f.Lifecycle.CanaryWeight, f.Lifecycle.Steps = nil, []int32{20, 50}
	f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: "PPP"}}}
	f.Ledger = ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Evidence, l.Next, l.NextBy = 20, 5, 100, v1alpha1.ReasonPassed })
	if l := advance(f, f.Ledger).Ledger; l.Next != 50 {
		t.Errorf("want replicas for 50 %% of requests, got %d: %s", l.Next, l.Phase)
	}
	f.Requests.Promote, f.Ledger.NextBy = candidate, v1alpha1.ReasonPromoted
	if l := advance(f, f.Ledger).Ledger; l.Next != 100 {
		t.Errorf("a person who promotes it skips the step: want 100 %%, got %d: %s", l.Next, l.Phase)
	}
}

// TestLateToGrow: a candidate whose replicas were never made is not blamed for it, however much time has gone by.
func TestLateToGrow(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		size   int64
		within v1alpha1.Capacity
		want   v1alpha1.RolloutPhase
	}{
		"Asked":    {"they were made, and did not become ready", 4, "", v1alpha1.RolloutRollingBack},
		"NotAsked": {"nothing reconciled the Algorithm in that time", 1, "", v1alpha1.RolloutStepping},
		"NotLent":  {"live replicas did not make room in that time", 1, v1alpha1.CapacityBorrow, v1alpha1.RolloutHolding},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			routed(80, 20, true)(&f)
			f.Lifecycle.CanaryWeight, f.Lifecycle.Steps = nil, []int32{20, 50}
			b := f.Slots[names.SlotB]
			b.Size, b.Available = tc.size, 1
			f.Slots[names.SlotB] = b
			f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: "PPP"}}}
			f.Ledger = ledger(v1alpha1.RolloutStepping, func(l *Ledger) {
				l.Weight, l.Evidence, l.Next, l.NextBy = 20, 5, 50, v1alpha1.ReasonPassed
				l.Started, l.Serving, l.Capacity = now.Add(-5*time.Hour), 1, tc.within
			})
			if l := advance(f, f.Ledger).Ledger; l.Phase != tc.want {
				t.Errorf("%s: want %s, got %s %s", tc.reason, tc.want, l.Phase, l.Reason)
			}
		})
	}
}

// TestSizeWhileTheClockIsBack: a candidate starts with the replicas that its first share needs, so that none of them is late once the
// time has come again.
func TestSizeWhileTheClockIsBack(t *testing.T) {
	f := facts()
	routed(100, 0, true)(&f)
	f.Lifecycle.CanaryWeight = new(int32(50))
	f.Slots[names.SlotB] = Slot{}
	f.Ledger = ledger(v1alpha1.RolloutPreparing, func(l *Ledger) { l.Entered = now.Add(30 * time.Minute) })
	if got := Decide(f).Beside.Size; got == nil || *got != 4 {
		t.Errorf("want 4 replicas for half of the requests, got %v", got)
	}
}

// TestRecall decides between what is remembered and what runs.
func TestRecall(t *testing.T) {
	type where struct{ Slot, Revision string }
	remembers := Memory{
		Ledgers: []string{ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight = 20 }).Text()}, Slot: names.SlotA, Live: live,
	}
	for name, tc := range map[string]struct {
		reason string
		facts  func(*Facts)
		want   where
	}{
		"Remembered": {"requests go where the ledger says", nil, where{names.SlotA, live}},
		"Deserted": {"the Service sends to the other slot, and nothing is to run in this one", func(f *Facts) {
			f.Selects, f.Slots[names.SlotA] = names.SlotB, Slot{}
		}, where{names.SlotB, candidate}},
		"Taken": {"another revision runs there, and without a Service no request reaches it", func(f *Facts) {
			f.Selects, f.Slots[names.SlotA] = "none", running(f.Slots[names.SlotA], "3333333333")
			b := f.Slots[names.SlotB]
			b.Available, b.Served = 4, true
			f.Slots[names.SlotB] = b
		}, where{names.SlotB, candidate}},
		"TakenBesideAnother": {"the Service sends to the other slot", func(f *Facts) {
			f.Selects, f.Slots[names.SlotA] = names.SlotB, running(f.Slots[names.SlotA], "3333333333")
		}, where{names.SlotB, candidate}},
		"Selected": {"requests reach what runs there, whatever it is", func(f *Facts) {
			f.Slots[names.SlotA] = running(f.Slots[names.SlotA], "3333333333")
		}, where{names.SlotA, live}},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			if tc.facts != nil {
				tc.facts(&f)
			}
			l := Recall(f, remembers)
			if diff := cmp.Diff(tc.want, where{l.Slot, l.Revision}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPromotionCounts shows that evidence counts from the promotion on, and through it.
func TestPromotionCounts(t *testing.T) {
	l := ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Evidence, l.Slot = 50, 3, names.SlotA })
	l = apply(l, weigh(l, 100, v1alpha1.ReasonPassed, ""), now)
	if l.Evidence != l.Epoch {
		t.Errorf("Promoting: want evidence of epoch %d, got %d", l.Epoch, l.Evidence)
	}
	f := facts()
	f.Ledger, f.Selects = l, l.Slot
	baking := advance(f, l).Ledger
	if baking.Phase != v1alpha1.RolloutBaking || baking.Evidence != l.Evidence {
		t.Errorf("Baking: want the evidence of epoch %d to go on, got %s with %d", l.Evidence, baking.Phase, baking.Evidence)
	}
}

// TestRulesArePure asks every rule about every phase: none may change the ledger that it looks at.
func TestRulesArePure(t *testing.T) {
	f := facts()
	f.Lifecycle.MirrorPercent = new(int32(10))
	for phase, ofPhase := range rules {
		l := ledger(phase, func(l *Ledger) { l.Weight, l.Previous = 20, live })
		f.Ledger = l
		before := l.Text()
		for _, r := range ofPhase {
			r.when(f, l)
			if diff := cmp.Diff(before, l.Text()); diff != "" {
				t.Errorf("rule %q of phase %s changes the ledger: -before, +after:\n%s", r.name, phase, diff)
			}
		}
	}
}
