// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/members"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/order"
)

// restores reports whether a restore is under way, or about to be.
func restores(s *decision.Pass) bool {
	if step := s.Memory.Step; step != nil && step.Kind == memory.StepUpgrade && step.Phase == v1alpha1.RestoreFilling && s.UpgradeReport().ID == step.ID {
		return s.IsMemoryPending() // The Topology reports when there is something to do.
	}
	return s.Memory.Step != nil || s.IsMemoryPending() || s.Restoring != nil && s.Restoring.Reason == v1alpha1.ReasonRestoreWaiting ||
		s.Upgrading != nil && s.Upgrading.Reason == v1alpha1.ReasonUpgradeWaiting
}

// restored reports the outcome of spec.restore, or the progress of the step that is under way.
func restored(s *decision.Pass) xpv2.Condition {
	if len(s.Problems) > 0 {
		return xpv2.Condition{}
	}
	c, _ := restoreState(s)
	return c
}

// restoreStatus is the same in the status.
func restoreStatus(s *decision.Pass) *v1alpha1.RestoreStatus {
	_, st := restoreState(s)
	return st
}

func restoreState(s *decision.Pass) (xpv2.Condition, *v1alpha1.RestoreStatus) {
	if step := decision.RestoreStep(s.Cluster); step != nil {
		reason, message := progressOf(s, step)
		return no(reason, step.ID+": "+message), &v1alpha1.RestoreStatus{
			ID: step.ID, Undo: step.Kind == memory.StepUndo, Phase: step.Phase, At: step.At, RestorePoint: step.RestorePoint, Message: message,
			From: int32(step.From), To: int32(step.To), Since: &metav1.Time{Time: step.Since}, //nolint:gosec // They count restores.
		}
	}
	if s.Spec.Restore == nil || len(s.Problems) > 0 {
		return xpv2.Condition{}, nil
	}
	if w := s.Restoring; w != nil {
		c := no(w.Reason, w.Message)
		if !w.Closed() {
			c = no(v1alpha1.ReasonRestoreWaiting, w.ID+": the restore starts when Capstan has recorded it")
		}
		return c, &v1alpha1.RestoreStatus{ID: w.ID, Undo: w.Undo, Phase: v1alpha1.RestoreWaiting, At: w.At, RestorePoint: w.Point, Message: w.Message}
	}
	id := decision.RestoreID(s.Cluster)
	done, ended := s.Memory.Restored(id)
	if !ended {
		return xpv2.Condition{}, nil
	}
	st := &v1alpha1.RestoreStatus{
		ID: id, Undo: done.State == v1alpha1.RestoreUndone, Phase: done.State, At: done.At, RestorePoint: done.RestorePoint,
		From: int32(done.From), To: int32(done.To), Since: &metav1.Time{Time: done.When}, //nolint:gosec // They count restores.
	}
	switch done.State {
	case v1alpha1.RestoreSkipped:
		return no(v1alpha1.ReasonRestoreSkipped, id+": the Database was created with this id, so nothing was restored: for a restore, choose another id"), st
	case v1alpha1.RestoreFailed:
		st.Message = strings.TrimRight(done.Why, ". ")
		return no(v1alpha1.ReasonRestoreFailed, fmt.Sprintf("%s: the restore failed, and generation %d continues unchanged: %s; to try again, choose another id", id, done.From, st.Message)), st
	case v1alpha1.RestoreUndone:
		return yes(v1alpha1.ReasonRestoreUndone, fmt.Sprintf("%s: clients were switched back to generation %d; for another restore, choose another id", id, done.From)), st
	default:
		return yes(v1alpha1.ReasonRestored, fmt.Sprintf(
			"%s: clients were switched to generation %d; to go back while generation %d is kept, set spec.restore to {undo: %s}", id, done.To, done.From, id)), st
	}
}

// progressOf a step: how far it is, and what blocks it.
func progressOf(s *decision.Pass, step *memory.Step) (xpv2.ConditionReason, string) {
	if s.Pending != "" {
		return v1alpha1.ReasonRestoreWaiting, fmt.Sprintf("waiting for Credential %q to record the next step", s.Called(names.SuffixAccess))
	}
	if step.Decided {
		return handingOver(s, step)
	}
	if step.Phase == v1alpha1.RestoreFencing {
		message := fmt.Sprintf("generation %d is being stopped; clients are switched to generation %d when no member of generation %d runs", step.From, step.To, step.From)
		if s.Order.Message != "" {
			message += ": " + s.Order.Message
		}
		return v1alpha1.ReasonRestoreFencing, message
	}
	t := s.Siblings[step.To]
	begun := fmt.Sprintf("generation %d is being prepared while generation %d serves: ", step.To, step.From)
	if t == nil {
		return v1alpha1.ReasonRestoreFilling, begun + decision.HowToCancel(*step)
	}
	m, awaited := blocked(t.Cluster), awaitedBy(s, t)
	switch {
	case m != nil:
		return xpv2.ConditionReason(m.Reason), begun + about(*m) + "; " + decision.HowToCancel(*step)
	case awaited != nil:
		return v1alpha1.ReasonRestoreFilling, begun + awaited.Message
	case order.AllHealthy(t.Cluster, t.Before):
		return v1alpha1.ReasonRestoreWaiting, fmt.Sprintf("generation %d is ready: %s", step.To, cmp.Or(s.SwitchGate(v1alpha1.ReasonRestoreWaiting).Message, "clients are about to be switched"))
	case t.HasTopology && t.Seen.Paused:
		return v1alpha1.ReasonPaused, begun + "its failover is paused by hand: " + s.Traits.Resume
	case t.Leads():
		return v1alpha1.ReasonRestoreFilling, begun + "waiting for " + strings.Join(unhealthy(t), ", ") + " to be ready and to have every commit"
	default:
		return v1alpha1.ReasonRestoreFilling, begun + "it has no leader yet; " + decision.HowToCancel(*step)
	}
}

// handingOver is what is reported while members of the active generation stop for the next one, which they decide without Capstan.
func handingOver(s *decision.Pass, step *memory.Step) (xpv2.ConditionReason, string) {
	if m := cannotFence(s.Cluster); m != nil {
		return v1alpha1.ReasonCannotFence, about(*m) + ", and continues to serve; if this lasts two minutes, the restore fails and changes nothing"
	}
	record := s.FenceRecord()
	message := fmt.Sprintf("the leader of generation %d stops, and clients are switched to generation %d when it has", step.From, step.To)
	switch {
	case record.State == apimembers.FenceCommitted:
		message += fmt.Sprintf("; members recorded that generation %d takes over, so generation %d does not continue by itself", step.To, step.From)
	case s.Fence().Withdraw:
		message += fmt.Sprintf("; the restore is being stopped, and generation %d continues when one of its members has recorded that", step.From)
	case record.Until != nil:
		message += fmt.Sprintf("; if this does not end by %s, generation %d continues", record.Until.UTC().Format(time.RFC3339), step.From)
	}
	return v1alpha1.ReasonRestoreFencing, message
}

// awaitedBy a generation that has no members yet, or nil.
func awaitedBy(s *decision.Pass, t *decision.Decision) *facts.Awaited {
	if t == nil || len(t.Sets) > 0 {
		return nil
	}
	return members.MissingFor(t.Cluster, s.Known && s.Pending != "")
}

func unhealthy(s *decision.Decision) []string {
	var names []string
	for _, v := range s.Before.Views {
		if v.Expected && !v.Healthy() {
			names = append(names, v.Name)
		}
	}
	return names
}

// generationStatus is the active generation and those kept, once there was a restore.
func generationStatus(s *facts.Cluster) *v1alpha1.GenerationStatus {
	if !s.Known && s.Generation <= 1 || s.Memory.Active == 0 {
		return nil
	}
	st := &v1alpha1.GenerationStatus{Active: int32(s.Generation)} //nolint:gosec // It counts restores.
	if at := s.Memory.Since; at != nil {
		st.Since = &metav1.Time{Time: *at}
	}
	for _, k := range s.Memory.Kept {
		st.Kept = append(st.Kept, v1alpha1.KeptGeneration{
			Generation: int32(k.Generation), //nolint:gosec // It counts restores.
			Restore:    k.ID, Until: metav1.Time{Time: k.Until}, Version: s.Memory.Versions[k.Generation],
		})
	}
	return st
}
