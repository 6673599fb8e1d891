// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/hooks"
	"github.com/capstan-dev/capstan/function/database/maintenance"
	"github.com/capstan-dev/capstan/function/database/order"
	"github.com/capstan-dev/capstan/function/database/podinputs"
)

// change that is not complete yet, or nil.
func change(s *decision.Decision) *v1alpha1.DatabaseChange {
	if len(s.Problems) > 0 || len(s.Sets) == 0 || s.Spec.Hibernated {
		return nil
	}
	es, pause, o := s.Planned, "", s.Order
	isOwn := s.Move != nil && s.Move.Own
	upgrades := !isOwn && order.UpgradeNext(s.Cluster, s.Before)
	switch {
	case isOwn:
		es = append(slices.Clone(es), v1alpha1.ChangeEffect{
			Field: "node " + s.Move.Node, Effect: v1alpha1.EffectSwitchover, Cause: v1alpha1.ChangedByNode,
		})
	case upgrades:
		es = append(slices.Clone(es), v1alpha1.ChangeEffect{Field: podinputs.FieldVersion, Effect: v1alpha1.EffectUpgrade, Cause: v1alpha1.ChangedBySpec})
		pause = fmt.Sprintf("about as long as the upgrade of the copy took, %d s, and some seconds more, once, while the leader stops and the data is upgraded",
			s.UpgradeReport().GapSeconds)
		g := s.MayFence()
		o = order.Order{Reason: g.Reason, Message: g.Message, Failed: g.Failed, Held: g.Closed(), Done: !g.Closed()}
	}
	if len(es) == 0 {
		return nil
	}
	c := &v1alpha1.DatabaseChange{
		Hash: s.ChangeID, Effects: es, State: v1alpha1.ChangeRunning,
		Order: s.Before.Queue(), WritePause: cmp.Or(pause, s.Before.Pause(isOwn)),
	}
	c.Summary = summary(c)
	if len(c.Order) > 0 || isOwn || upgrades {
		c.Window = maintenance.WindowAt(s.Spec.Maintenance, s.Signals.Hold(), s.Now)
		c.State, c.Message = stateOf(s, c, o)
	}
	return c
}

// stateOf a change that touches members, and its message.
func stateOf(s *decision.Decision, c *v1alpha1.DatabaseChange, o order.Order) (v1alpha1.ChangeState, string) {
	total := len(s.Before.Having(func(v order.View) bool { return v.Exists }))
	done := total - len(c.Order)
	progress := fmt.Sprintf("%d of %d members match the spec", done, total)
	m := s.Spec.Maintenance
	state, message := v1alpha1.ChangeWaiting, o.Message
	switch approved := m != nil && m.Approval == v1alpha1.ApprovalManual && m.Approve == c.Hash; {
	case o.Failed:
		state = v1alpha1.ChangeFailed
	case o.Held && approved && o.Reason != v1alpha1.ReasonChangeNotApproved:
		state = v1alpha1.ChangeApproved
	case o.Held:
	case s.Move != nil && s.Move.Gate.Closed():
		message = s.Move.Gate.Message
	case s.Move != nil && s.Move.Reason == v1alpha1.ReasonAwaitingArchive:
		message = s.Move.Message
	case !o.Touches() && o.Reason == v1alpha1.ReasonAwaitingTopology, o.Reason == v1alpha1.ReasonPaused:
	case o.Done:
		return v1alpha1.ChangeRunning, ""
	default:
		return v1alpha1.ChangeRunning, progress
	}
	if done > 0 && len(c.Order) > 0 {
		message += "; " + progress
	}
	return state, message
}

func summary(c *v1alpha1.DatabaseChange) string {
	fields := map[string][]string{}
	for _, e := range c.Effects {
		if !slices.Contains(fields[e.Effect], e.Field) {
			fields[e.Effect] = append(fields[e.Effect], e.Field)
		}
	}
	var words []string
	for _, e := range []struct{ effect, word string }{
		{v1alpha1.EffectReload, "reload"},
		{v1alpha1.EffectGrow, "grow volumes"},
		{v1alpha1.EffectScale, "add or remove members"},
		{v1alpha1.EffectRestart, fmt.Sprintf("restart %d of the members", len(c.Order))},
		{v1alpha1.EffectSwitchover, "switch over"},
		{v1alpha1.EffectUpgrade, "upgrade the data"},
	} {
		if fs := fields[e.effect]; len(fs) > 0 {
			words = append(words, fmt.Sprintf("%s for %s", e.word, strings.Join(fs, ", ")))
		}
	}
	return strings.Join(words, "; ") + "; writes pause: " + c.WritePause
}

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
