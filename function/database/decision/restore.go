// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"fmt"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/maintenance"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/switchover"
)

// keepOldFor is how long a generation is kept unless the spec says otherwise.
const keepOldFor = 24 * time.Hour

// mostKept is how many generations are kept at a time, in addition to the active one and one that comes up.
const mostKept = 2

// Restoring is what spec.restore asks for and is neither under way nor carried out.
type Restoring struct {
	// Gate that blocks it now, if any.
	maintenance.Gate

	ID    string
	At    v1alpha1.Moment
	Point v1alpha1.RestorePointName
	Undo  bool

	// to is the generation that an undo goes back to.
	to int
}

// keepsFor is how long the generation before is kept.
func keepsFor(s *facts.Cluster, step *memory.Step) time.Duration {
	if u := s.Spec.Upgrade; step.IsUpgrade() && u != nil && u.KeepOldFor != nil {
		return u.KeepOldFor.Duration
	}
	if r := s.Spec.Restore; !step.IsUpgrade() && r != nil && r.KeepOldFor != nil {
		return r.KeepOldFor.Duration
	}
	return keepOldFor
}

// Reference reports whether the spec still requests a step.
func Reference(s *facts.Cluster, step *memory.Step) bool {
	r := s.Spec.Restore
	switch {
	case step.IsUpgrade():
		return s.IsUpgradeRequested(step)
	case r == nil:
		return false
	case step.Kind == memory.StepUndo:
		return r.Undo == step.ID
	default:
		return r.ID == step.ID && r.At == step.At && r.RestorePoint == step.RestorePoint
	}
}

// restoreRequest of the spec, unless it was carried out or is under way.
func (s *Decision) restoreRequest() *Restoring {
	r := s.Spec.Restore
	if r == nil || RestoreStep(s.Cluster) != nil {
		return nil
	}
	w := &Restoring{ID: RestoreID(s.Cluster), At: r.At, Point: r.RestorePoint, Undo: r.Undo != ""}
	done, ended := s.Memory.Restored(w.ID)
	if ended && (!w.Undo || done.State != v1alpha1.RestoreDone) {
		return nil
	}
	known := memoryGate(s.Cluster, v1alpha1.ReasonRestoreWaiting)
	switch {
	case known.Closed(), len(s.Sets) == 0 && !w.Undo:
		w.Gate = known
	case len(s.Sets) == 0:
		w.Gate = maintenance.Gate{Reason: v1alpha1.ReasonRestoreWaiting, Message: noMembers}
	case w.Undo:
		w.Gate = cmp.Or(undoGate(s.Cluster, w, done, ended), s.SwitchGate(v1alpha1.ReasonRestoreWaiting))
	default:
		w.Gate = cmp.Or(restoreGate(s.Cluster, w.At), s.SwitchGate(v1alpha1.ReasonRestoreWaiting))
	}
	return w
}

const noMembers = "there are no members yet: see the condition Available"

// undoGate is closed when there is nothing to go back to.
func undoGate(s *facts.Cluster, w *Restoring, done memory.Done, ended bool) maintenance.Gate {
	w.to = done.From
	switch {
	case !ended:
		return maintenance.Gate{Reason: v1alpha1.ReasonRestoreImpossible, Message: fmt.Sprintf(
			"spec.restore.undo: %q: there was no restore with this id: name the restore that switched clients to the active generation, see status.generation", w.ID)}
	case !s.Memory.Keeps(done.From) || s.Memory.Generation() != done.To:
		return maintenance.Gate{Reason: v1alpha1.ReasonRestoreImpossible, Message: fmt.Sprintf(
			"spec.restore.undo: %q: generation %d is no longer kept, or clients were switched again since then: "+
				"its backups are in the bucket for as long as spec.backup.retention says, in stanza %s; another Database can restore them with spec.from.backup", w.ID, done.From, backup.StanzaOf(s, done.From))}
	default:
		return maintenance.Gate{}
	}
}

// restoreGate is closed when a moment cannot be restored, or not yet.
func restoreGate(s *facts.Cluster, at v1alpha1.Moment) maintenance.Gate {
	impossible := func(message string) maintenance.Gate {
		return maintenance.Gate{Reason: v1alpha1.ReasonRestoreImpossible, Message: message}
	}
	waits := func(message string) maintenance.Gate {
		return maintenance.Gate{Reason: v1alpha1.ReasonRestoreWaiting, Message: message}
	}
	b := s.BackupReport()
	t, earliest, latest := facts.Moment(at), facts.Stamp(b.Earliest), facts.Stamp(b.Since)
	switch {
	case s.Spec.Backup == nil:
		return impossible("spec.restore: the Database has no backups: there is nothing to restore without spec.backup")
	case !s.HasTopology, !b.Asked && b.Label == "" && s.Leads():
		return waits("the leader has not reported its backups yet: see the condition BackupFresh")
	case b.Asked && b.Label == "":
		return impossible("there is no backup of this generation yet: wait for the first (see the condition BackupFresh), or undo the last restore")
	case t != nil && t.After(s.Now):
		return impossible(fmt.Sprintf("spec.restore.at: %q: is in the future: choose an earlier moment, or remove it to restore the latest", at))
	case t != nil && earliest != nil && t.Before(earliest.Time):
		return impossible(fmt.Sprintf("spec.restore.at: %q: is before status.backup.earliestRestorable: choose a later moment", at))
	case t != nil && b.Archive == observev1alpha1.ArchiveFailing && latest != nil && t.After(latest.Time):
		return waits("the archive does not reach spec.restore.at yet: see the condition ArchiveHealthy, or choose a moment up to status.backup.latestRestorable")
	case len(s.Memory.Kept) >= mostKept:
		return waits(fmt.Sprintf("%d generations are kept already: the restore starts when one of them is removed (see status.generation.kept)", mostKept))
	default:
		return maintenance.Gate{}
	}
}

// SwitchGate is closed when clients cannot be switched to another generation now. Members are not stopped halfway through a change.
func (s *Decision) SwitchGate(waiting xpv2.ConditionReason) maintenance.Gate {
	switch g := maintenance.Frozen(s.Spec.Maintenance, s.Signals.Hold(), s.Now); {
	case g.Closed():
		return g
	case s.Asleep():
		return maintenance.Gate{Reason: waiting, Message: "members are stopped or being started: this continues when they run"}
	case s.Order.Touches():
		return maintenance.Gate{Reason: waiting, Message: "a member is being changed: this continues after that"}
	case switchover.Moving(s.Cluster, s.Move):
		return maintenance.Gate{Reason: waiting, Message: "a switchover is under way: this continues after that"}
	default:
		return maintenance.Gate{}
	}
}

// memoryGate is closed when it is not known what was restored or upgraded before, or another step is under way.
func memoryGate(s *facts.Cluster, waiting xpv2.ConditionReason) maintenance.Gate {
	switch {
	case s.Unread:
		return maintenance.Gate{Reason: v1alpha1.ReasonMemoryUnread, Message: fmt.Sprintf(
			"the record of earlier restores and upgrades cannot be read, so nothing is restored or upgraded: "+
				"see the annotation credentials.capstan.dev/remembered of Secret %q", s.Called(names.SuffixAccess))}
	case !s.Known:
		return maintenance.Gate{Reason: waiting, Message: fmt.Sprintf(
			"waiting for Credential %q to report earlier restores and upgrades: check that provider-capstan runs", s.Called(names.SuffixAccess))}
	case s.Memory.Step != nil:
		return maintenance.Gate{Reason: waiting, Message: s.Memory.Step.ID + " is under way: this starts when that ends"}
	default:
		return maintenance.Gate{}
	}
}

// HowToCancel a step before clients are switched.
func HowToCancel(s memory.Step) string {
	field := "spec.restore"
	if s.IsUpgrade() {
		field = "spec.upgrade.undo"
	}
	return "to cancel, remove " + field + ": this generation continues to serve"
}

// RestoreStep is the step of a restore that is under way, if one is.
func RestoreStep(s *facts.Cluster) *memory.Step {
	if step := s.Memory.Step; step != nil && !step.IsUpgrade() {
		return step
	}
	return nil
}

// RestoreID is the id of spec.restore.
func RestoreID(s *facts.Cluster) string {
	if r := s.Spec.Restore; r != nil {
		return cmp.Or(r.Undo, r.ID)
	}
	return ""
}
