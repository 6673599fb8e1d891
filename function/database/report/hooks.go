// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/hooks"
	"github.com/capstan-dev/capstan/function/database/maintenance"
)

// hookStatus of the change that is under way.
func hookStatus(s *decision.Decision) []v1alpha1.HookStatus {
	if s.Hooks.Over {
		return nil
	}
	var all []v1alpha1.HookStatus
	for _, st := range hooks.Steps(s.Cluster, s.Hooks) {
		h := v1alpha1.HookStatus{Name: st.Name, When: st.When, State: st.State}
		if st.State != v1alpha1.HookWaiting {
			h.Job = s.HookJob(st.ID)
		}
		all = append(all, h)
	}
	return all
}

// hooksAfter is what the end of a change waits for whose members are done.
func hooksAfter(s *decision.Decision) (maintenance.Gate, bool) {
	left := func(st hooks.Step) bool { return st.When == v1alpha1.HookAfter && !st.Done() }
	switch {
	case !slices.ContainsFunc(hooks.Steps(s.Cluster, s.Hooks), left):
		return maintenance.Gate{}, false
	case s.Hooks.Gate.Closed():
		return s.Hooks.Gate, s.Hooks.After
	default:
		return maintenance.Gate{Reason: v1alpha1.ReasonHookRunning, Message: "the hooks of spec.maintenance.hooks.after run when every member is healthy"}, true
	}
}
