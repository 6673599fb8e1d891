// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/maintenance"
	"github.com/capstan-dev/capstan/function/database/order"
	"github.com/capstan-dev/capstan/function/database/podinputs"
)

// change that is not complete yet, or nil.
func change(s *decision.Decision) *v1alpha1.DatabaseChange {
	if len(s.Problems) > 0 || len(s.Sets) == 0 || s.Spec.Hibernated {
		return nil
	}
	es := s.Planned
	if m := s.Move; m != nil && m.Own {
		es = append(slices.Clone(es), v1alpha1.ChangeEffect{
			Field: "node " + m.Node, Effect: v1alpha1.EffectSwitchover, Cause: v1alpha1.ChangedByNode,
		})
	}
	upgrades := order.UpgradeNext(s.Cluster, s.Before) && (s.Move == nil || !s.Move.Own)
	if upgrades {
		es = append(slices.Clone(es), v1alpha1.ChangeEffect{Field: podinputs.FieldVersion, Effect: v1alpha1.EffectUpgrade, Cause: v1alpha1.ChangedBySpec})
	}
	if len(es) == 0 {
		return nil
	}
	c := &v1alpha1.DatabaseChange{
		Hash: s.ChangeID, Effects: es, State: v1alpha1.ChangeRunning,
		Order: s.Before.Queue(), WritePause: s.Before.Pause(s.Move != nil && s.Move.Own),
	}
	if upgrades {
		c.WritePause = upgradePause(s.Cluster)
	}
	c.Summary = summary(c)
	touching := len(c.Order) > 0 || s.Move != nil && s.Move.Own || upgrades
	if !touching {
		return c
	}
	c.Window = maintenance.WindowAt(s.Spec.Maintenance, s.Now)
	if upgrades {
		describeUpgrade(s, c)
	} else {
		setState(s, c)
	}
	return c
}

// setState of a change that touches members.
func setState(s *decision.Decision, c *v1alpha1.DatabaseChange) {
	total := len(s.Before.Having(func(v order.View) bool { return v.Exists }))
	done := total - len(c.Order)
	switch approved := s.Spec.Maintenance != nil && s.Spec.Maintenance.Approval == v1alpha1.ApprovalManual && s.Spec.Maintenance.Approve == c.Hash; {
	case s.Order.Failed:
		c.State, c.Message = v1alpha1.ChangeFailed, s.Order.Message
	case s.Order.Held && approved && s.Order.Reason != v1alpha1.ReasonChangeNotApproved:
		c.State, c.Message = v1alpha1.ChangeApproved, s.Order.Message
	case s.Order.Held:
		c.State, c.Message = v1alpha1.ChangeWaiting, s.Order.Message
	case s.Move != nil && s.Move.Gate.Closed():
		c.State, c.Message = v1alpha1.ChangeWaiting, s.Move.Gate.Message
	case !s.Order.Touches() && s.Order.Reason == v1alpha1.ReasonAwaitingTopology, s.Order.Reason == v1alpha1.ReasonPaused:
		c.State, c.Message = v1alpha1.ChangeWaiting, s.Order.Message
	case s.Order.Done:
	default:
		c.Message = fmt.Sprintf("%d of %d members match the spec", done, total)
	}
	if c.State != v1alpha1.ChangeRunning && done > 0 && len(c.Order) > 0 {
		c.Message += fmt.Sprintf("; %d of %d members match the spec", done, total)
	}
}

// summary of a change in a line.
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
