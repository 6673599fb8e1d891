// SPDX-License-Identifier: Apache-2.0

package training

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"
)

const coordinatorLost = `{phase: Recovering, attempt: 1, missing: [{index: 0, since: "2026-11-20T12:00:00Z"}]}`

// TestDeadNode has a pod of a run that is over stay, because its node does not answer. The next run begins without its end only when no rank
// can run: it would write the same checkpoints.
func TestDeadNode(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		spec   string
		edit   string
		report string
		// remains is what the provider sees of the pods after that.
		remains string
		// run that is there, a minute and a half later, and what Progressing says before.
		run  int32
		says string
	}{
		"Coordinator": {
			reason: "the members ended, and a coordinator without them has stopped its ranks",
			report: coordinatorLost, remains: `{members: 1, index: 0, node: gpu-1}`,
			run: 2, says: "The grace period of pod 0 is over, and its node gpu-1 does not say that it has ended; its crew is not complete since 2026-11-20T12:05:00Z",
		},
		"All": {
			reason: "a crew that is complete where nothing can see it may train",
			report: coordinatorLost, remains: `{members: 4, index: 0, node: gpu-1}`,
			run: 1, says: "its node gpu-1 does not say that it has ended: if the node does not come back, delete it",
		},
		"AllButSpare": {
			reason: "a crew is complete without its spare",
			spec:   strings.Replace(usualSpec, "workers: 4", "workers: 3, spares: 1", 1),
			report: coordinatorLost, remains: `{members: 3, index: 0, node: gpu-1}`,
			run: 1, says: "if the node does not come back, delete it",
		},
		"OneWorker": {
			reason: "nothing tells it to stop",
			spec:   strings.Replace(usualSpec, "workers: 4", "workers: 1", 1),
			report: coordinatorLost, remains: `{members: 1, index: 0, node: gpu-1}`,
			run: 1, says: "if the node does not come back, delete it",
		},
		"FewerWorkersNow": {
			reason: "what counts is what the run began with",
			edit:   "{workers: 1}", report: running, remains: `{members: 1, index: 2, node: gpu-1}`,
			run: 2, says: "its crew is not complete",
		},
		"MoreWorkersNow": {
			reason: "what counts is what the run began with",
			spec:   strings.Replace(usualSpec, "workers: 4", "workers: 2", 1),
			edit:   "{workers: 4}", report: running, remains: `{members: 2, index: 1, node: gpu-1}`,
			run: 1, says: "if the node does not come back, delete it",
		},
		"Unknown": {
			reason: "the provider is stopped, so that nothing is known of the pods",
			report: coordinatorLost, remains: `null`,
			run: 1, says: "run 2 follows once the pods of run 1 are gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begun(t, cmp.Or(tc.spec, usualSpec))
			w.edit(cmp.Or(tc.edit, "{}"))
			w.report(tc.report)
			w.now = w.now.Add(5 * time.Minute)
			w.settle()
			w.report(fmt.Sprintf(`{phase: Recovering, attempt: 1, remains: %s}`, tc.remains))
			w.settle()
			if got := fmt.Sprint(w.plan.Conditions); !strings.Contains(got, tc.says) {
				t.Errorf("%s: want %q, got %s", tc.reason, tc.says, got)
			}
			w.now = w.now.Add(89 * time.Second)
			w.settle()
			if w.run() > 1 {
				t.Errorf("%s: run %d began before ranks have had time to stop", tc.reason, w.run())
			}
			w.now = w.now.Add(time.Second)
			w.settle()
			if got := max(w.run(), 1); got != tc.run {
				t.Errorf("%s: want run %d, got %d: %v", tc.reason, tc.run, got, w.plan.Conditions)
			}
		})
	}
}
