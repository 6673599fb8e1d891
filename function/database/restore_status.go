// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// takeBack says how to end a step before clients are switched.
func (s generationStep) takeBack() string {
	field := "spec.restore"
	if s.upgrades() {
		field = "spec.upgrade.undo"
	}
	return "to end it, take " + field + " back: this generation goes on serving"
}

// restores reports whether a restore is under way, or about to be.
func (s *state) restores() bool {
	if step := s.memory.Step; step != nil && step.Kind == stepUpgrade && step.Phase == v1alpha1.RestoreFilling && s.upgradeReport().ID == step.ID {
		return s.isMemoryPending() // The Topology tells when there is something to do.
	}
	return s.memory.Step != nil || s.isMemoryPending() || s.restoring != nil && s.restoring.reason == v1alpha1.ReasonRestoreWaiting ||
		s.upgrading != nil && s.upgrading.reason == v1alpha1.ReasonUpgradeWaiting
}

// restoreStep is the step of a restore that is under way, if one is.
func (s *cluster) restoreStep() *generationStep {
	if step := s.memory.Step; step != nil && !step.upgrades() {
		return step
	}
	return nil
}

// restoreDeadlines are when restores are worth another look.
func (s *state) restoreDeadlines() []time.Time {
	var at []time.Time
	for _, k := range s.memory.Kept {
		at = append(at, k.Until)
	}
	if s.restoring != nil && !s.restoring.until.IsZero() {
		at = append(at, s.restoring.until)
	}
	return at
}

// restored tells what became of spec.restore, or how far the step is that is under way.
func restored(s *state) xpv2.Condition {
	if len(s.problems) > 0 || s.spec.Restore == nil && s.restoreStep() == nil {
		return xpv2.Condition{}
	}
	if step := s.restoreStep(); step != nil {
		reason, message := s.progressOf(step)
		return no(reason, step.ID+": "+message)
	}
	if w := s.restoring; w != nil {
		if w.reason == "" {
			return no(v1alpha1.ReasonRestoreWaiting, w.id+": it is being written down that it begins")
		}
		return no(w.reason, w.message)
	}
	id := s.restoreID()
	switch done, _ := s.memory.done(id); done.State {
	case v1alpha1.RestoreSkipped:
		return no(v1alpha1.ReasonRestoreSkipped, id+": the Database was made with this id, and nothing was restored: for a restore choose another id")
	case v1alpha1.RestoreUndone:
		return yes(v1alpha1.ReasonRestoreUndone, fmt.Sprintf("%s: clients were led back to generation %d; for another restore choose another id", id, done.From))
	default:
		return yes(v1alpha1.ReasonRestored, fmt.Sprintf(
			"%s: clients were led to generation %d; to go back while generation %d is kept, set spec.restore to {undo: %s}", id, done.To, done.From, id))
	}
}

// restoreID is the id of spec.restore.
func (s *cluster) restoreID() string {
	switch r := s.spec.Restore; {
	case r == nil:
		return ""
	case r.Undo != "":
		return r.Undo
	default:
		return r.ID
	}
}

// progressOf a step: how far it is, and what blocks it.
func (s *state) progressOf(step *generationStep) (xpv2.ConditionReason, string) {
	if s.pending != "" {
		return v1alpha1.ReasonRestoreWaiting, fmt.Sprintf("waiting for Credential %q to remember what comes next", s.called(suffixAccess))
	}
	if step.Phase == v1alpha1.RestoreFencing {
		message := fmt.Sprintf("generation %d is stopped, and clients are led to generation %d once no member of it runs", step.From, step.To)
		if s.order.message != "" {
			message += ": " + s.order.message
		}
		return v1alpha1.ReasonRestoreFencing, message
	}
	t := s.siblings[step.To]
	begun := fmt.Sprintf("generation %d comes up beside generation %d, which serves: ", step.To, step.From)
	if t == nil {
		return v1alpha1.ReasonRestoreFilling, begun + step.takeBack()
	}
	hindered, is := t.hindered()
	switch {
	case is:
		return xpv2.ConditionReason(hindered.Reason), begun + t.about(hindered) + "; " + step.takeBack()
	case len(t.sets) == 0 && t.missingFor(s.known && s.pending != "") != nil:
		return v1alpha1.ReasonRestoreFilling, begun + t.missingFor(s.known && s.pending != "").message
	case t.up(t.before):
		return v1alpha1.ReasonRestoreWaiting, fmt.Sprintf("generation %d is ready: %s", step.To, cmp.Or(s.switchBlocked(), "clients are about to be led over"))
	case t.observed && t.seen.Paused:
		return v1alpha1.ReasonPaused, begun + "failover in it is paused by hand: " + s.traits.Resume
	case t.leads():
		return v1alpha1.ReasonRestoreFilling, begun + "waiting for " + strings.Join(t.unhealthy(), ", ") + " to be ready and to have every commit"
	default:
		return v1alpha1.ReasonRestoreFilling, begun + "no member of it leads yet; " + step.takeBack()
	}
}

// unhealthy members of this generation that should be there.
func (s *decision) unhealthy() []string {
	var names []string
	for _, v := range s.before.views {
		if v.expected && !v.healthy() {
			names = append(names, v.name)
		}
	}
	return names
}

// generationStatus tells which generation there is, once there was a restore.
func (s *cluster) generationStatus() *v1alpha1.GenerationStatus {
	if !s.known && s.generation <= 1 || s.memory.Active == 0 {
		return nil
	}
	st := &v1alpha1.GenerationStatus{Active: int32(s.generation)} //nolint:gosec // It counts restores.
	if at := s.memory.Since; at != nil {
		st.Since = &metav1.Time{Time: *at}
	}
	for _, k := range s.memory.Kept {
		st.Kept = append(st.Kept, v1alpha1.KeptGeneration{
			Generation: int32(k.Generation), //nolint:gosec // It counts restores.
			Restore:    k.ID, Until: metav1.Time{Time: k.Until}, Version: s.memory.Versions[k.Generation],
		})
	}
	return st
}

// restoreStatus is what became of spec.restore, or the step that is under way.
func (s *state) restoreStatus() *v1alpha1.RestoreStatus {
	if step := s.restoreStep(); step != nil {
		_, message := s.progressOf(step)
		return &v1alpha1.RestoreStatus{
			ID: step.ID, Undo: step.Kind == stepUndo, Phase: step.Phase, At: step.At, RestorePoint: step.RestorePoint, Message: message,
			From: int32(step.From), To: int32(step.To), Since: &metav1.Time{Time: step.Since}, //nolint:gosec // They count restores.
		}
	}
	r := s.spec.Restore
	if r == nil || len(s.problems) > 0 {
		return nil
	}
	if w := s.restoring; w != nil {
		return &v1alpha1.RestoreStatus{ID: w.id, Undo: w.undo, Phase: v1alpha1.RestoreWaiting, At: w.at, RestorePoint: w.point, Message: w.message}
	}
	done, ended := s.memory.done(s.restoreID())
	if !ended {
		return nil
	}
	return &v1alpha1.RestoreStatus{
		ID: done.ID, Undo: done.State == v1alpha1.RestoreUndone, Phase: done.State, At: done.At, RestorePoint: done.RestorePoint,
		From: int32(done.From), To: int32(done.To), Since: &metav1.Time{Time: done.When}, //nolint:gosec // They count restores.
	}
}
