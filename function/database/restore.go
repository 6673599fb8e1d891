// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
)

// keepOldFor is how long a generation is kept unless the spec says otherwise.
const keepOldFor = 24 * time.Hour

// mostKept is how many generations are kept at a time, beside the active one and one that comes up.
const mostKept = 2

// restoring is what spec.restore asks for and is neither under way nor carried out.
type restoring struct {
	id    string
	at    v1alpha1.Moment
	point v1alpha1.RestorePointName
	undo  bool

	// to is the generation that an undo goes back to.
	to int

	// reason and message why it is not begun now, if it is not; until is when it is worth another look.
	reason  xpv2.ConditionReason
	message string
	until   time.Time
}

func checkRestore(s *cluster) []check.Problem {
	r := s.spec.Restore
	if r != nil && r.At != "" && moment(r.At) == nil {
		return []check.Problem{check.Invalid("spec.restore.at", string(r.At), "must be a time with its zone, for instance 2026-11-21T08:59:00Z")}
	}
	return nil
}

// keepsFor is how long the generation before is kept.
func (s *cluster) keepsFor(step *generationStep) time.Duration {
	if u := s.spec.Upgrade; step.upgrades() && u != nil && u.KeepOldFor != nil {
		return u.KeepOldFor.Duration
	}
	if r := s.spec.Restore; !step.upgrades() && r != nil && r.KeepOldFor != nil {
		return r.KeepOldFor.Duration
	}
	return keepOldFor
}

// wanted reports whether a step is still asked for.
func (s *cluster) wanted(step *generationStep) bool {
	r := s.spec.Restore
	switch {
	case step.upgrades():
		return s.isUpgradeRequested(step)
	case r == nil:
		return false
	case step.Kind == stepUndo:
		return r.Undo == step.ID
	default:
		return r.ID == step.ID && r.At == step.At && r.RestorePoint == step.RestorePoint
	}
}

// wish of the spec, unless it was carried out or is under way.
func (s *decision) restoreRequest() *restoring {
	r := s.spec.Restore
	if r == nil || s.restoreStep() != nil {
		return nil
	}
	w := &restoring{id: r.ID, at: r.At, point: r.RestorePoint, undo: r.Undo != ""}
	if w.undo {
		w.id = r.Undo
	}
	done, ended := s.memory.done(w.id)
	if ended && (!w.undo || done.State != v1alpha1.RestoreDone) {
		return nil
	}
	say := func(reason xpv2.ConditionReason, message string) *restoring {
		w.reason, w.message = reason, message
		return w
	}
	if reason, message := s.memoryBlocks(v1alpha1.ReasonRestoreWaiting); reason != "" {
		return say(reason, message)
	}
	switch {
	case len(s.sets) == 0 && w.undo:
		return say(v1alpha1.ReasonRestoreWaiting, "there are no members yet: see the condition Available")
	case len(s.sets) == 0:
		return w
	}
	if w.undo {
		if reason, message := s.undoBlocked(w, done, ended); reason != "" {
			return say(reason, message)
		}
	} else if reason, message := s.restoreBlocked(w.at); reason != "" {
		return say(reason, message)
	}
	if g := frozen(s.spec.Maintenance, s.Now); g.closed() {
		w.until = g.until
		return say(g.reason, g.message)
	}
	if why := s.switchBlocked(); why != "" {
		return say(v1alpha1.ReasonRestoreWaiting, why)
	}
	return w
}

// undoBlocked says why there is nothing to go back to, if there is not.
func (s *cluster) undoBlocked(w *restoring, done doneRestore, ended bool) (xpv2.ConditionReason, string) {
	if !ended {
		return v1alpha1.ReasonRestoreImpossible, fmt.Sprintf("spec.restore.undo: %q: there was no restore with this id: see status.generation, and name the one that led clients here", w.id)
	}
	if !s.memory.keeps(done.From) || s.memory.active() != done.To {
		return v1alpha1.ReasonRestoreImpossible, fmt.Sprintf("spec.restore.undo: %q: generation %d is not kept any more, or clients were led elsewhere since: "+
			"its backups are still in the bucket, under stanza %s, for spec.from.backup of another Database", w.id, done.From, s.stanzaOf(done.From))
	}
	w.to = done.From
	return "", ""
}

// restoreBlocked says why a moment cannot be restored, or not yet.
func (s *cluster) restoreBlocked(at v1alpha1.Moment) (xpv2.ConditionReason, string) {
	upgradeBlocked, waiting := v1alpha1.ReasonRestoreImpossible, v1alpha1.ReasonRestoreWaiting
	b := s.backupReport()
	t, earliest, latest := moment(at), stamp(b.Earliest), stamp(b.Since)
	switch {
	case s.spec.Backup == nil:
		return upgradeBlocked, "spec.restore: the Database has no backups: there is nothing to restore without spec.backup"
	case !s.observed, !b.Asked && b.Label == "" && s.leads():
		return waiting, "it is not known yet what backups there are: see the condition BackupFresh"
	case b.Asked && b.Label == "":
		return upgradeBlocked, "there is no backup of this generation yet: wait for the first (see the condition BackupFresh), or undo the restore before"
	case t != nil && t.After(s.Now):
		return upgradeBlocked, fmt.Sprintf("spec.restore.at: %q: is in the future: choose an earlier moment, or none for the latest", at)
	case t != nil && earliest != nil && t.Before(earliest.Time):
		return upgradeBlocked, fmt.Sprintf("spec.restore.at: %q: is before status.backup.earliestRestorable: choose a moment from then on", at)
	case t != nil && b.Archive == observev1alpha1.ArchiveFailing && latest != nil && t.After(latest.Time):
		return waiting, "what was written by spec.restore.at did not come into the archive: see the condition ArchiveHealthy, or choose a moment up to status.backup.latestRestorable"
	case len(s.memory.Kept) >= mostKept:
		return waiting, fmt.Sprintf("%d generations are kept already: it begins when the first of them is let go (see status.generation.kept)", mostKept)
	default:
		return "", ""
	}
}

// switchBlocked says why clients cannot be led to another generation now, if they cannot. Members are not stopped halfway through
// a change of them.
func (s *decision) switchBlocked() string {
	switch {
	case frozen(s.spec.Maintenance, s.Now).closed():
		return "spec.maintenance.freeze: " + frozen(s.spec.Maintenance, s.Now).message
	case s.asleep():
		return "members are stopped, or are being started: it goes on once they run"
	case s.order.touches():
		return "a member is being changed: it goes on once that is done"
	case s.moving(s.move):
		return "the lead is moving: it goes on once that is done"
	default:
		return ""
	}
}
