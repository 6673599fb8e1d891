// SPDX-License-Identifier: Apache-2.0

package decision

import (
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
	ID    string
	At    v1alpha1.Moment
	Point v1alpha1.RestorePointName
	Undo  bool

	// to is the generation that an undo goes back to.
	to int

	// Reason and Message why it does not begin now; Until is when that may change.
	Reason  xpv2.ConditionReason
	Message string
	Until   time.Time
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
		return isUpgradeRequested(s, step)
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
	w := &Restoring{ID: r.ID, At: r.At, Point: r.RestorePoint, Undo: r.Undo != ""}
	if w.Undo {
		w.ID = r.Undo
	}
	done, ended := s.Memory.Restored(w.ID)
	if ended && (!w.Undo || done.State != v1alpha1.RestoreDone) {
		return nil
	}
	say := func(reason xpv2.ConditionReason, message string) *Restoring {
		w.Reason, w.Message = reason, message
		return w
	}
	if reason, message := memoryBlocks(s.Cluster, v1alpha1.ReasonRestoreWaiting); reason != "" {
		return say(reason, message)
	}
	switch {
	case len(s.Sets) == 0 && w.Undo:
		return say(v1alpha1.ReasonRestoreWaiting, "there are no members yet: see the condition Available")
	case len(s.Sets) == 0:
		return w
	}
	if w.Undo {
		if reason, message := undoBlocked(s.Cluster, w, done, ended); reason != "" {
			return say(reason, message)
		}
	} else if reason, message := restoreBlocked(s.Cluster, w.At); reason != "" {
		return say(reason, message)
	}
	if g := maintenance.Frozen(s.Spec.Maintenance, s.Now); g.Closed() {
		w.Until = g.Until
		return say(g.Reason, g.Message)
	}
	if why := s.SwitchBlocked(); why != "" {
		return say(v1alpha1.ReasonRestoreWaiting, why)
	}
	return w
}

// undoBlocked is why there is nothing to go back to, if there is not.
func undoBlocked(s *facts.Cluster, w *Restoring, done memory.Done, ended bool) (xpv2.ConditionReason, string) {
	if !ended {
		return v1alpha1.ReasonRestoreImpossible, fmt.Sprintf("spec.restore.undo: %q: there was no restore with this id: name the restore that switched clients to the active generation, see status.generation", w.ID)
	}
	if !s.Memory.Keeps(done.From) || s.Memory.Generation() != done.To {
		return v1alpha1.ReasonRestoreImpossible, fmt.Sprintf("spec.restore.undo: %q: generation %d is no longer kept, or clients were switched again since then: "+
			"its backups are still in the bucket, in stanza %s; another Database can restore them with spec.from.backup", w.ID, done.From, backup.StanzaOf(s, done.From))
	}
	w.to = done.From
	return "", ""
}

// restoreBlocked is why a moment cannot be restored, or not yet.
func restoreBlocked(s *facts.Cluster, at v1alpha1.Moment) (xpv2.ConditionReason, string) {
	impossible, waiting := v1alpha1.ReasonRestoreImpossible, v1alpha1.ReasonRestoreWaiting
	b := s.BackupReport()
	t, earliest, latest := facts.Moment(at), facts.Stamp(b.Earliest), facts.Stamp(b.Since)
	switch {
	case s.Spec.Backup == nil:
		return impossible, "spec.restore: the Database has no backups: there is nothing to restore without spec.backup"
	case !s.HasTopology, !b.Asked && b.Label == "" && s.Leads():
		return waiting, "the leader has not reported its backups yet: see the condition BackupFresh"
	case b.Asked && b.Label == "":
		return impossible, "there is no backup of this generation yet: wait for the first (see the condition BackupFresh), or undo the last restore"
	case t != nil && t.After(s.Now):
		return impossible, fmt.Sprintf("spec.restore.at: %q: is in the future: choose an earlier moment, or remove it to restore the latest", at)
	case t != nil && earliest != nil && t.Before(earliest.Time):
		return impossible, fmt.Sprintf("spec.restore.at: %q: is before status.backup.earliestRestorable: choose a later moment", at)
	case t != nil && b.Archive == observev1alpha1.ArchiveFailing && latest != nil && t.After(latest.Time):
		return waiting, "the archive does not reach spec.restore.at yet: see the condition ArchiveHealthy, or choose a moment up to status.backup.latestRestorable"
	case len(s.Memory.Kept) >= mostKept:
		return waiting, fmt.Sprintf("%d generations are kept already: the restore starts when one of them is removed (see status.generation.kept)", mostKept)
	default:
		return "", ""
	}
}

// SwitchBlocked is why clients cannot be switched to another generation now, or "". Members are not stopped halfway through a
// change.
func (s *Decision) SwitchBlocked() string {
	switch {
	case maintenance.Frozen(s.Spec.Maintenance, s.Now).Closed():
		return maintenance.Frozen(s.Spec.Maintenance, s.Now).Message
	case s.Asleep():
		return "members are stopped or being started: this continues when they run"
	case s.Order.Touches():
		return "a member is being changed: this continues after that"
	case switchover.Moving(s.Cluster, s.Move):
		return "a switchover is under way: this continues after that"
	default:
		return ""
	}
}

// memoryBlocks is why no restore or upgrade can begin: it is not known what was done before, or another one is under way.
func memoryBlocks(s *facts.Cluster, waiting xpv2.ConditionReason) (xpv2.ConditionReason, string) {
	switch {
	case s.Unread:
		return v1alpha1.ReasonMemoryUnread, fmt.Sprintf("the record of earlier restores and upgrades cannot be read, so nothing is restored or upgraded: "+
			"see the annotation credentials.capstan.dev/remembered of Secret %q", s.Called(names.SuffixAccess))
	case !s.Known:
		return waiting, fmt.Sprintf("waiting for Credential %q to report earlier restores and upgrades: check that provider-capstan runs", s.Called(names.SuffixAccess))
	case s.Memory.Step != nil:
		return waiting, s.Memory.Step.ID + " is under way: this starts when that ends"
	default:
		return "", ""
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
	switch r := s.Spec.Restore; {
	case r == nil:
		return ""
	case r.Undo != "":
		return r.Undo
	default:
		return r.ID
	}
}
