// SPDX-License-Identifier: Apache-2.0

package database

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// TestUpdated: a change is over once every member runs what it was told and was well with it. A member that is lost later undoes
// no change.
func TestUpdated(t *testing.T) {
	// The last member of a change is the one that led, orders-db-a.
	set := func(w *world) map[string]any {
		return compose.Map(w.request.Observed[names.MemberPrefix+"a"].Map(), "status")
	}
	seen := func(w *world) map[string]any {
		m, _ := compose.List(w.request.Observed[names.Topology].Map(), "status", "atProvider", "members")[0].(map[string]any)
		return m
	}
	gone := func(w *world) {
		delete(seen(w), "revision")
		delete(seen(w), "role")
		seen(w)["ready"], seen(w)["state"] = false, observev1alpha1.MemberStarting
	}
	for name, tc := range map[string]struct {
		reason  string
		before  string
		observe func(*world)
		want    []string
	}{
		"Well":          {"Every member runs it and is well.", "False", func(*world) {}, []string{"True", "Updated"}},
		"OtherRevision": {"The pod is the one before.", "False", func(w *world) { seen(w)["revision"] = "before" }, []string{"False", "AwaitingStandby"}},
		"OtherRevisionUnheard": {
			"The pod is the one before, although it was not told yet that the change began.", "True",
			func(w *world) { seen(w)["revision"] = "before" },
			[]string{"False", "AwaitingStandby"},
		},
		"NotLookedAt": {
			"The controller has not seen the template yet.", "True",
			func(w *world) { set(w)["observedGeneration"] = 0.0 },
			[]string{"False", "AwaitingStandby"},
		},
		"NotRolledOut": {
			"The pod before is gone, and the next one was not ready yet.", "True",
			func(w *world) { gone(w); set(w)["currentRevision"] = "before" },
			[]string{"False", "AwaitingStandby"},
		},
		"Gone":     {"Nobody knows whether the pod that comes runs it.", "False", gone, []string{"False", "AwaitingStandby"}},
		"Starting": {"It runs it and does not serve yet.", "False", func(w *world) { seen(w)["ready"] = false }, []string{"False", "AwaitingStandby"}},
		"Behind": {
			"It follows and does not have every commit yet.", "False", func(w *world) {
				seen(w)["role"], seen(w)["state"], seen(w)["lag"] = observev1alpha1.RoleReplica, observev1alpha1.MemberStreaming, observev1alpha1.LagBehind
			}, []string{"False", "AwaitingStandby"},
		},
		"Blocked": {
			"What blocks the last member is told as of any other.", "False", func(w *world) {
				gone(w)
				seen(w)["reason"], seen(w)["message"] = "Unschedulable", "no node has room"
			}, []string{"False", "Unschedulable"},
		},
		"LostLater": {"Its pod is lost after the change was over.", "True", gone, []string{"True", "Updated"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			compose.Condition(w.request.Composite.Map(), "Updated")["status"] = tc.before
			tc.observe(w)
			status, reason, message := condition(w.plan(), "Updated")
			if diff := cmp.Diff(tc.want, []string{status, reason}); diff != "" {
				t.Errorf("%s\n%s\nUpdated: -want, +got:\n%s", tc.reason, message, diff)
			}
		})
	}
}
