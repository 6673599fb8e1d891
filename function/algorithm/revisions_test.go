// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
)

// TestCandidateIsPinned: when a candidate is pinned, and when it counts as one of the earlier revisions.
func TestCandidateIsPinned(t *testing.T) {
	const spec = "{image: %s, replicas: 2, route: {gateway: {name: shared, namespace: gateway}}, " +
		"lifecycle: {canaryWeight: 50, soak: 10s, bake: 1m}}"
	settled := func(w *world, n int) {
		for range n {
			w.settle()
			w.later(time.Minute)
		}
	}
	type want struct {
		Standing string
		Pinned   bool
		Number   int64
		Kept     int
	}
	cases := map[string]struct {
		reason string
		do     func(w *world)
		want   want
	}{
		"ShareBegins": {
			"Requests reach it, and it was never live.", func(*world) {}, want{"Stepping/Soaking", true, untried, 1},
		},
		"ShareEnds": {
			"What it is made of is open again while no request reaches it.",
			func(w *world) {
				w.available(names.SlotB, 0)
				w.compose(w.plan())
			},
			want{"Holding/NotServing", false, 0, 1},
		},
		"RollsBack": {
			"It finishes its requests as it was.",
			func(w *world) {
				w.later(20 * time.Second)
				w.judge("FFF")
				w.compose(w.plan())
			},
			want{"RollingBack/MetricFailed", true, untried, 1},
		},
		"RolledBack": {
			"It was never live, so nobody goes back to it.",
			func(w *world) {
				w.later(20 * time.Second)
				w.judge("FFF")
				settled(w, 4)
			},
			want{"RolledBack/RolledBack", false, 0, 1},
		},
		"Promoted": {
			"It is the latest.",
			func(w *world) {
				w.later(20 * time.Second)
				w.judge("PPP")
				w.compose(w.plan())
			},
			want{"Promoting", true, 2, 2},
		},
		"Lost": {
			"It is pinned again from its Deployment, with the number that it had.",
			func(w *world) {
				delete(w.request.Observed, names.RevisionPrefix+rolloutOf(w.t, w.plan()).Candidate)
				w.compose(w.plan())
			},
			want{"Stepping/Soaking", true, untried, 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := soaking(t, spec)
			resource := names.RevisionPrefix + rolloutOf(t, w.plan()).Candidate
			before := compose.Map(w.request.Observed[resource].Map(), "data")
			tc.do(w)
			p := w.plan()
			got := want{Standing: standsAt(t, p), Kept: len(statusOf(p).Revision.History)}
			if o := w.request.Observed[resource]; o != nil {
				got.Pinned, got.Number = true, compose.NumberOf(o, 0, "revision")
				if diff := cmp.Diff(before, compose.Map(o.Map(), "data")); diff != "" {
					t.Errorf("what is pinned never changes: -before, +after:\n%s", diff)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
