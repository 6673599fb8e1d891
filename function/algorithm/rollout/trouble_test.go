// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// TestTrouble: one blip condemns nobody. What waiting changes is waited for, as long as it may take.
func TestTrouble(t *testing.T) {
	type decision struct {
		Phase  v1alpha1.RolloutPhase
		Held   v1alpha1.RolloutPhase
		Reason xpv2.ConditionReason
		Weight int32
		Next   int32
		Failed bool
	}
	stepping := func(l *Ledger) { l.Weight, l.Evidence = 20, 5 }
	baking := func(l *Ledger) {
		l.Slot, l.Revision, l.Previous, l.Weight, l.Evidence = names.SlotB, candidate, live, 100, 5
	}
	pausedAt := func(share int32) func(*Ledger) {
		return func(l *Ledger) {
			l.Phase, l.Held, l.Reason, l.Next, l.NextBy = v1alpha1.RolloutHolding, v1alpha1.RolloutStepping, v1alpha1.ReasonNotServing, share, v1alpha1.ReasonResumed
			l.Started, l.Trouble, l.TroubleAt = l.Entered, v1alpha1.ReasonNotListening, l.Entered
		}
	}
	// pods of a slot: how many serve of how many, and what is found of the others.
	pods := func(slot string, serve, size int64, found observev1alpha1.Finding) func(*Facts) {
		return func(f *Facts) {
			s := f.Slots[slot]
			s.Size, s.Total, s.Updated, s.Ready, s.Available = size, size, size, serve, serve
			s.Trouble, s.TroubleMessage, s.TroubleCause, s.TroubleExtent = xpv2.ConditionReason(found.Reason), found.Message, found.Cause, found.Extent
			f.Slots[slot] = s
		}
	}
	finding := func(reason xpv2.ConditionReason) observev1alpha1.Finding {
		return observev1alpha1.Finding{Reason: string(reason), Message: "told"}
	}
	ofRevision := func(reason xpv2.ConditionReason) observev1alpha1.Finding {
		return observev1alpha1.Finding{Reason: string(reason), Message: "told", Cause: observev1alpha1.FindingOfRevision}
	}
	outside := func(reason xpv2.ConditionReason) observev1alpha1.Finding {
		return observev1alpha1.Finding{Reason: string(reason), Message: "told", Cause: observev1alpha1.FindingOutside}
	}
	extent := func(reason xpv2.ConditionReason, e observev1alpha1.FindingExtent) observev1alpha1.Finding {
		return observev1alpha1.Finding{Reason: string(reason), Message: "told", Extent: e}
	}
	// since is how long the candidate has had its trouble, and how long it has started.
	since := func(reason xpv2.ConditionReason, d time.Duration, also func(*Ledger)) func(*Ledger) {
		return func(l *Ledger) {
			l.Entered, l.Began, l.Started = now.Add(-d), now.Add(-d), now.Add(-d)
			l.Trouble, l.TroubleAt = reason, now.Add(-d)
			if also != nil {
				also(l)
			}
		}
	}
	judged := func(verdicts string) func(*Facts) {
		return func(f *Facts) {
			f.Observes, f.Interval, f.Selects = true, time.Hour, ""
			f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: verdicts}}}
		}
	}
	both := func(changes ...func(*Facts)) func(*Facts) {
		return func(f *Facts) {
			for _, change := range changes {
				change(f)
			}
		}
	}
	const (
		preparing, onStep  = v1alpha1.RolloutPreparing, v1alpha1.RolloutStepping
		holding, back      = v1alpha1.RolloutHolding, v1alpha1.RolloutRollingBack
		promoting, mirrors = v1alpha1.RolloutPromoting, v1alpha1.RolloutMirroring
	)
	routed := func(f *Facts) { f.ByReplicas = false }
	cases := map[string]struct {
		reason string
		ledger Ledger
		facts  func(*Facts)
		want   decision
	}{
		"LoadsForMinutes": {
			reason: "a model that loads is no fault",
			ledger: ledger(preparing, since(v1alpha1.ReasonNotListening, 19*time.Minute, nil)),
			facts:  pods(names.SlotB, 0, 1, finding(v1alpha1.ReasonNotListening)),
			want:   decision{Phase: preparing},
		},
		"WarmsForMinutes": {
			reason: "nor is a server that warms up",
			ledger: ledger(preparing, since(v1alpha1.ReasonNotWarm, 19*time.Minute, nil)),
			facts:  pods(names.SlotB, 0, 1, finding(v1alpha1.ReasonNotWarm)),
			want:   decision{Phase: preparing},
		},
		"LoadsTooLong": {
			reason: "startupSeconds bounds it, and the time for image and model",
			ledger: ledger(preparing, since(v1alpha1.ReasonNotListening, 20*time.Minute, nil)),
			facts:  pods(names.SlotB, 0, 1, finding(v1alpha1.ReasonNotListening)),
			want:   decision{back, "", v1alpha1.ReasonNeverReady, 0, 0, true},
		},
		"OneAfterTheOther": {
			reason: "each replica has its own time",
			ledger: ledger(preparing, since(v1alpha1.ReasonNotListening, time.Hour, nil)),
			facts:  both(pods(names.SlotB, 1, 2, finding(v1alpha1.ReasonNotListening)), func(f *Facts) { f.Lifecycle.CanaryWeight = new(int32(50)) }),
			want:   decision{Phase: preparing},
		},
		"Downloads": {
			reason: "the time to start begins when the model is there",
			ledger: ledger(preparing, since(v1alpha1.ReasonModelFetching, time.Hour, func(l *Ledger) { l.Excused = true })),
			facts:  pods(names.SlotB, 0, 1, finding(v1alpha1.ReasonModelFetching)),
			want:   decision{Phase: preparing},
		},
		"Downloaded": {
			reason: "the download does not count",
			ledger: ledger(preparing, since(v1alpha1.ReasonModelFetching, time.Hour, func(l *Ledger) { l.Excused = true })),
			facts:  pods(names.SlotB, 0, 1, finding(v1alpha1.ReasonNotListening)),
			want:   decision{Phase: preparing},
		},
		"PromotedWhileItLoads": {
			reason: "a person who promotes it waits for it, too",
			ledger: ledger(preparing, since(v1alpha1.ReasonNotListening, 19*time.Minute, nil)),
			facts: both(pods(names.SlotB, 0, 4, finding(v1alpha1.ReasonNotListening)), func(f *Facts) {
				f.Requests.Promote = candidate
			}),
			want: decision{Phase: preparing},
		},
		"PromotedBesideABadPod": {
			reason: "enough replicas serve, and one more that does not is no reason to wait",
			ledger: ledger(preparing, since(v1alpha1.ReasonImagePullFailed, 10*time.Minute, nil)),
			facts: both(pods(names.SlotB, 4, 5, ofRevision(v1alpha1.ReasonImagePullFailed)), func(f *Facts) {
				f.Requests.Promote = candidate
			}),
			want: decision{promoting, "", v1alpha1.ReasonPassed, 100, 0, false},
		},
		"ImageMissing": {
			reason: "no waiting makes an image that is not there",
			ledger: ledger(preparing, since(v1alpha1.ReasonImagePullFailed, 3*time.Minute, nil)),
			facts:  pods(names.SlotB, 0, 1, ofRevision(v1alpha1.ReasonImagePullFailed)),
			want:   decision{back, "", v1alpha1.ReasonImagePullFailed, 0, 0, true},
		},
		"ModelMismatch": {
			reason: "nor another model",
			ledger: ledger(preparing, since(v1alpha1.ReasonModelDigestMismatch, 3*time.Minute, nil)),
			facts:  pods(names.SlotB, 0, 1, ofRevision(v1alpha1.ReasonModelDigestMismatch)),
			want:   decision{back, "", v1alpha1.ReasonModelDigestMismatch, 0, 0, true},
		},
		"RegistryAway": {
			reason: "a registry that does not answer is not the revision's",
			ledger: ledger(preparing, since(v1alpha1.ReasonImagePullFailed, 3*time.Hour, func(l *Ledger) { l.Excused = true })),
			facts:  pods(names.SlotB, 0, 1, outside(v1alpha1.ReasonImagePullFailed)),
			want:   decision{holding, preparing, v1alpha1.ReasonSourceUnreachable, 0, 0, false},
		},
		"BucketAway": {
			reason: "nor is a bucket",
			ledger: ledger(preparing, since(v1alpha1.ReasonModelUnreachable, 3*time.Minute, func(l *Ledger) { l.Excused = true })),
			facts:  pods(names.SlotB, 0, 1, outside(v1alpha1.ReasonModelUnreachable)),
			want:   decision{holding, preparing, v1alpha1.ReasonSourceUnreachable, 0, 0, false},
		},
		"RegistryBack": {
			reason: "the replicas have all of their time again",
			ledger: ledger(preparing, since(v1alpha1.ReasonImagePullFailed, 3*time.Hour, func(l *Ledger) {
				l.Phase, l.Held, l.Reason, l.Excused = holding, preparing, v1alpha1.ReasonSourceUnreachable, true
			})),
			facts: pods(names.SlotB, 0, 1, observev1alpha1.Finding{}),
			want:  decision{preparing, "", v1alpha1.ReasonResumed, 0, 0, false},
		},
		"BadNode": {
			reason: "pods that fail on one node only blame the node",
			ledger: ledger(preparing, since(v1alpha1.ReasonCrashLooping, 3*time.Hour, func(l *Ledger) { l.Excused = true })),
			facts:  both(pods(names.SlotB, 1, 2, extent(v1alpha1.ReasonCrashLooping, observev1alpha1.FindingOnNode)), func(f *Facts) { f.Lifecycle.CanaryWeight = new(int32(50)) }),
			want:   decision{holding, preparing, v1alpha1.ReasonNodeFault, 0, 0, false},
		},
		"BadNodeInAStep": {
			reason: "nor in a step, where the others serve",
			ledger: ledger(onStep, since(v1alpha1.ReasonCrashLooping, 3*time.Minute, stepping)),
			facts:  both(pods(names.SlotB, 3, 4, extent(v1alpha1.ReasonCrashLooping, observev1alpha1.FindingOnNode)), judged("II")),
			want:   decision{holding, onStep, v1alpha1.ReasonNodeFault, 20, 0, false},
		},
		"OnePodCrashes": {
			reason: "one pod of many is unlucky",
			ledger: ledger(onStep, since(v1alpha1.ReasonCrashLooping, 3*time.Minute, stepping)),
			facts:  both(pods(names.SlotB, 1, 2, extent(v1alpha1.ReasonCrashLooping, observev1alpha1.FindingOfFew)), judged("II")),
			want:   decision{onStep, "", "", 20, 0, false},
		},
		"OnePodCrashesInTheBake": {
			reason: "and does not send all callers back",
			ledger: ledger(v1alpha1.RolloutBaking, func(l *Ledger) { baking(l); l.Entered, l.Began = now, now }),
			facts:  both(pods(names.SlotB, 19, 20, extent(v1alpha1.ReasonCrashLooping, observev1alpha1.FindingOfFew)), judged("II")),
			want:   decision{v1alpha1.RolloutBaking, "", "", 100, 0, false},
		},
		"AllCrash": {
			reason: "a quarter of the pods, or the only one, again and again",
			ledger: ledger(onStep, stepping),
			facts:  both(pods(names.SlotB, 0, 1, finding(v1alpha1.ReasonCrashLooping)), judged("II")),
			want:   decision{back, "", v1alpha1.ReasonCrashLooping, 0, 0, true},
		},
		"Evicted": {
			reason: "the only pod is gone: nobody is sent there, and nobody is condemned",
			ledger: ledger(onStep, stepping),
			facts:  both(pods(names.SlotB, 0, 1, observev1alpha1.Finding{}), judged("II")),
			want:   decision{holding, onStep, v1alpha1.ReasonNotServing, 0, 20, false},
		},
		"EvictedWithCopies": {
			reason: "copies of requests wait for it as well",
			ledger: ledger(mirrors, func(l *Ledger) { l.Evidence = 5 }),
			facts: both(pods(names.SlotB, 0, 1, observev1alpha1.Finding{}), judged("II"), func(f *Facts) {
				f.Lifecycle.MirrorPercent = new(int32(100))
			}),
			want: decision{holding, mirrors, v1alpha1.ReasonNotServing, 0, 0, false},
		},
		"EvictedInTheBake": {
			reason: "callers go back for as long as no pod serves",
			ledger: ledger(v1alpha1.RolloutBaking, func(l *Ledger) { baking(l); l.Entered, l.Began = now, now }),
			facts:  both(pods(names.SlotB, 0, 1, observev1alpha1.Finding{}), judged("II")),
			want:   decision{holding, onStep, v1alpha1.ReasonNotServing, 0, 100, false},
		},
		"NobodyServesInTheBake": {
			reason: "where no pod of either serves, nothing is better",
			ledger: ledger(v1alpha1.RolloutBaking, func(l *Ledger) { baking(l); l.Entered, l.Began = now, now }),
			facts:  both(pods(names.SlotA, 0, 1, observev1alpha1.Finding{}), pods(names.SlotB, 0, 1, observev1alpha1.Finding{}), judged("II")),
			want:   decision{v1alpha1.RolloutBaking, "", "", 100, 0, false},
		},
		"StillEvicted": {
			reason: "it may take as long as any start",
			ledger: ledger(onStep, pausedAt(20)), facts: pods(names.SlotB, 0, 1, finding(v1alpha1.ReasonNotListening)),
			want: decision{holding, onStep, v1alpha1.ReasonNotServing, 0, 20, false},
		},
		"NeverServesAgain": {
			reason: "and no longer",
			ledger: ledger(onStep, func(l *Ledger) { pausedAt(20)(l); l.Started = now.Add(-20 * time.Minute) }),
			facts:  pods(names.SlotB, 0, 1, finding(v1alpha1.ReasonNotListening)),
			want:   decision{back, "", v1alpha1.ReasonNotServing, 0, 0, true},
		},
		"ServesAgain": {
			reason: "it has its callers again",
			ledger: ledger(onStep, pausedAt(20)), facts: routed,
			want: decision{onStep, "", v1alpha1.ReasonResumed, 20, 0, false},
		},
		"ServesAgainAfterTheBake": {
			reason: "all of them, when it had all of them",
			ledger: ledger(onStep, pausedAt(100)), facts: pods(names.SlotB, 4, 4, observev1alpha1.Finding{}),
			want: decision{promoting, "", v1alpha1.ReasonResumed, 100, 0, false},
		},
		"ServesAgainForTheThirdTime": {
			reason: "a third time within an hour waits for the hour to end",
			ledger: ledger(onStep, func(l *Ledger) {
				pausedAt(20)(l)
				l.Interrupted = []time.Time{now.Add(-10 * time.Minute), now.Add(-30 * time.Minute), now.Add(-59 * time.Minute)}
			}),
			want: decision{holding, onStep, v1alpha1.ReasonNotServing, 0, 20, false},
		},
		"ServesAgainAnHourLater": {
			reason: "and then goes on",
			ledger: ledger(onStep, func(l *Ledger) {
				pausedAt(20)(l)
				l.Interrupted = []time.Time{now.Add(-10 * time.Minute), now.Add(-30 * time.Minute), now.Add(-time.Hour)}
			}),
			want: decision{onStep, "", v1alpha1.ReasonResumed, 20, 0, false},
		},
		"BothFail": {
			reason: "a fault that both share holds",
			ledger: ledger(onStep, stepping), facts: judged("PPS"),
			want: decision{holding, onStep, v1alpha1.ReasonSharedFault, 20, 0, false},
		},
		"BothFailStill": {
			reason: "as long as it lasts",
			ledger: ledger(onStep, func(l *Ledger) {
				stepping(l)
				l.Phase, l.Held, l.Reason = holding, onStep, v1alpha1.ReasonSharedFault
			}), facts: judged("PPSSSEE"),
			want: decision{holding, onStep, v1alpha1.ReasonSharedFault, 20, 0, false},
		},
		"BothFailNoMore": {
			reason: "and then counts from zero",
			ledger: ledger(onStep, func(l *Ledger) {
				stepping(l)
				l.Phase, l.Held, l.Reason = holding, onStep, v1alpha1.ReasonSharedFault
			}), facts: judged("PPSSI"),
			want: decision{onStep, "", v1alpha1.ReasonResumed, 20, 0, false},
		},
		"BothFailAndPromoted": {
			reason: "a person may know better",
			ledger: ledger(onStep, stepping), facts: both(judged("SSS"), func(f *Facts) { f.Requests.Promote = candidate }),
			want: decision{onStep, "", v1alpha1.ReasonPromoted, 20, 100, false},
		},
		"FailsInTheBake": {
			reason: "beside the revision before it, which shows whose fault it is",
			ledger: ledger(v1alpha1.RolloutBaking, func(l *Ledger) { baking(l); l.Entered, l.Began = now, now }),
			facts:  both(judged("FF"), pods(names.SlotB, 4, 4, observev1alpha1.Finding{})),
			want:   decision{preparing, "", v1alpha1.ReasonComparing, 0, 0, false},
		},
		"FailsInTheBakeAgain": {
			reason: "once is enough",
			ledger: ledger(v1alpha1.RolloutBaking, func(l *Ledger) { baking(l); l.Entered, l.Began, l.Doubted = now, now, true }), facts: judged("FF"),
			want: decision{back, "", v1alpha1.ReasonMetricFailed, 0, 0, true},
		},
		"FailsInTheBakeAtOnce": {
			reason: "without a share below all there is no comparison",
			ledger: ledger(v1alpha1.RolloutBaking, func(l *Ledger) { baking(l); l.Entered, l.Began = now, now }),
			facts:  both(judged("FF"), func(f *Facts) { f.Lifecycle.CanaryWeight = new(int32(100)) }),
			want:   decision{back, "", v1alpha1.ReasonMetricFailed, 0, 0, true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Startup = 10 * time.Minute
			if tc.facts != nil {
				tc.facts(&f)
			}
			f.Ledger = tc.ledger
			o := advance(f, tc.ledger)
			l := o.Ledger
			if l.Reason == tc.ledger.Reason && l.Phase == tc.ledger.Phase && l.Phase != v1alpha1.RolloutHolding {
				l.Reason = ""
			}
			if diff := cmp.Diff(tc.want, decision{l.Phase, l.Held, l.Reason, l.Weight, l.Next, len(l.Failed) > 0}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s\n%s", tc.reason, diff, o.Message)
			}
			if l.Phase == v1alpha1.RolloutHolding && o.Message == "" {
				t.Errorf("%s: a hold must have a message", tc.reason)
			}
		})
	}
}
