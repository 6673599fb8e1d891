// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
)

// TestCapacity goes through rollouts under load, with an autoscaler that takes away at once what has nothing to do. The trial
// holds every pass to I10: what all requests go to bears them.
func TestCapacity(t *testing.T) {
	// held at half of the requests, where only a person lets it go on.
	held := func(tr *trial) {
		tr.wish.image = "z"
		tr.asks()
		for range 8 {
			passes(tr, 1)
		}
		if l, _ := tr.memory(); l.Reason != v1alpha1.ReasonAwaitingApproval || l.Weight != 50 {
			tr.failf("setup", "it is %s %s at %d %%", l.Phase, l.Reason, l.Weight)
		}
	}
	candidate := func(tr *trial) string {
		l, _ := tr.memory()
		return l.Candidate
	}
	approve := func(tr *trial) {
		tr.wish.approve = candidate(tr)
		tr.asks()
		tr.round()
		tr.round()
	}
	for name, tc := range map[string]struct {
		reason string
		do     func(*trial)

		// phase that it comes to, and how many replicas serve at least.
		phase v1alpha1.RolloutPhase
		least int64
	}{
		"Promoted": {
			"the candidate takes all requests over with as many replicas as served them before",
			func(tr *trial) { held(tr); approve(tr) }, v1alpha1.RolloutBaking, 10,
		},
		"Aborted": {
			"the live revision takes its part back", func(tr *trial) {
				held(tr)
				tr.wish.abort = candidate(tr)
				tr.asks()
				tr.round()
			}, v1alpha1.RolloutRollingBack, 10,
		},
		"Burst": {
			"more requests in the step are more for both, and for what takes all of them", func(tr *trial) {
				tr.load = 6
				tr.autoscale(true)
				tr.round()
				held(tr)
				tr.load = 11
				tr.autoscale(false)
				for range 4 {
					tr.round()
				}
				approve(tr)
				tr.round()
			}, v1alpha1.RolloutBaking, 11,
		},
		"BurstWhileItBakes": {
			"what takes back is as large as what has grown since", func(tr *trial) {
				tr.load = 6
				tr.round()
				held(tr)
				approve(tr)
				tr.load = 12
				for range 3 {
					tr.autoscale(false)
					tr.kubernetes()
				}
				tr.round()
				tr.look('F')
				tr.look('F')
				tr.round()
				tr.round()
				tr.round()
			}, v1alpha1.RolloutPreparing, 12,
		},
		"SmallStandby": {
			"a revision that keeps one replica grows before it takes requests back", func(tr *trial) {
				tr.wish.standby = 1
				tr.asks()
				held(tr)
				approve(tr)
				for range 3 {
					tr.round()
				}
				if n := tr.ready[names.SlotA]; n != 1 {
					tr.failf("setup", "%d replicas stand by", n)
				}
				tr.look('F')
				tr.look('F')
				tr.round()
				if l, _ := tr.memory(); l.Reason != v1alpha1.ReasonStandbyStarting {
					tr.failf("setup", "it is %s %s", l.Phase, l.Reason)
				}
				tr.round()
				tr.round()
			}, v1alpha1.RolloutPreparing, 10,
		},
		"WithoutMetrics": {
			"what is to take requests back after the deadline grows before it", func(tr *trial) {
				tr.wish.standby, tr.wish.noData = 1, string(v1alpha1.NoDataRollback)
				tr.asks()
				held(tr)
				approve(tr)
				for range 3 {
					tr.round()
				}
				for range 4 {
					tr.look('E')
				}
				for range 3 {
					tr.round()
				}
				tr.later(25 * time.Minute)
				tr.write(tr.pass(), all, true)
			}, v1alpha1.RolloutRollingBack, 10,
		},
		"DeadWithASmallStandby": {
			"one replica is more than none", func(tr *trial) {
				tr.wish.standby = 1
				tr.asks()
				held(tr)
				approve(tr)
				for range 3 {
					tr.round()
				}
				tr.mode[names.SlotB] = podsCrashing
				tr.kubernetes()
				tr.look('I')
				tr.write(tr.pass(), all, true)
			}, v1alpha1.RolloutRollingBack, 1,
		},
		"AbortedWithoutRoom": {
			"a person who aborts waits two minutes for replicas that find no room", func(tr *trial) {
				tr.wish.standby = 1
				tr.asks()
				held(tr)
				approve(tr)
				for range 3 {
					tr.round()
				}
				tr.mode[names.SlotA] = podsPending
				tr.wish.abort = candidate(tr)
				tr.asks()
				tr.round()
				if l, _ := tr.memory(); l.Reason != v1alpha1.ReasonStandbyStarting {
					tr.failf("setup", "it is %s %s", l.Phase, l.Reason)
				}
				tr.later(2 * time.Minute)
				tr.write(tr.pass(), all, true)
			}, v1alpha1.RolloutRollingBack, 1,
		},
	} {
		for _, provider := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/provider=%t", name, provider), func(t *testing.T) {
				tr := newTrial(t, wish{image: "x", replicas: 10, routed: true, scaled: true, provider: provider, steps: []int{50}, approval: string(v1alpha1.ApprovalBeforePromotion)})
				tr.load = 10
				tr.round()
				tc.do(tr)
				l, _ := tr.memory()
				if n := tr.ready[l.Slot]; l.Phase != tc.phase || n < tc.least {
					t.Errorf("%s: want %s with %d replicas, got %s %s with %d: %v", tc.reason, tc.phase, tc.least, l.Phase, l.Reason, n, tr.done)
				}
			})
		}
	}
}

// TestAutoscalers of both slots while requests reach both. The provider reports the load then, and at no other time: it would have
// Crossplane apply every object.
func TestAutoscalers(t *testing.T) {
	for _, provider := range []bool{false, true} {
		t.Run(fmt.Sprintf("provider=%t", provider), func(t *testing.T) {
			tr := newTrial(t, wish{image: "x", replicas: 8, routed: true, scaled: true, provider: provider, steps: []int{20}})
			tr.load = 8
			tr.round()
			least := func() (out [2]int64, asked int) {
				p := tr.plan()
				for i, slot := range names.Slots {
					spec := compose.Map(object(t, p, tr.scaler(slot)), "spec")
					if provider {
						if spec = compose.Map(spec, "forProvider"); spec["reportNeeds"] == true {
							asked++
						}
						spec = compose.Map(spec, "autoscaler")
					}
					out[i] = compose.Number(spec, 0, "minReplicas")
				}
				return out, asked
			}
			holds := func(reason string, want [2]int64, wantAsked int) {
				t.Helper()
				if !provider {
					wantAsked = 0
				}
				if got, asked := least(); got != want || asked != wantAsked {
					t.Errorf("%s: want %v and %d that report the load, got %v and %d", reason, want, wantAsked, got, asked)
				}
			}
			holds("at rest only the minimum of the spec counts", [2]int64{2, 0}, 0)
			tr.wish.image = "z"
			tr.asks()
			passes(tr, 1)
			for range 3 {
				tr.round()
			}
			holds("both keep what their part of the requests needs, and the live one what it has to take back", [2]int64{8, 2}, 2)
			tr.until(v1alpha1.RolloutStable, 'P')
			tr.round()
			holds("afterwards only the minimum of the spec counts", [2]int64{0, 2}, 0)
		})
	}
}
