// SPDX-License-Identifier: Apache-2.0

// Package memory has what a Database has to remember of its generations even when it is deleted, and reads it.
package memory

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/names"
)

// A Memory is what a Database has to remember of its generations even when it is deleted. It is an annotation of the Secret of
// the first Credential, which outlives the Database together with its volumes. The Credential writes it from its field remember
// and reports it in its status. A step is recorded first, and done once the Secret has it. Without a Memory there is generation 1
// and nothing to do.
type Memory struct {
	// Active is the generation that clients are switched to, and Since when they were; no number is 1.
	Active int        `json:"active,omitempty"`
	Since  *time.Time `json:"since,omitempty"`

	// Last is the highest number that was ever given: none is given twice, because the volumes of a generation stay when it goes.
	Last int `json:"last,omitempty"`

	// Step that is under way.
	Step *Step `json:"step,omitempty"`

	// Kept generations are stopped.
	Kept []Kept `json:"kept,omitempty"`

	// Done are the requests that were carried out, oldest first.
	Done []Done `json:"done,omitempty"`

	// Promoted is the promotion of a Database that was a standby; nil before.
	Promoted *Promotion `json:"promoted,omitempty"`

	// Imported is the end of the import of a Database that was filled from another server or from dumps; nil before.
	Imported *Promotion `json:"imported,omitempty"`

	// Versions are the major versions of the data of generations, once there was an upgrade.
	Versions map[int]string `json:"versions,omitempty"`
}

// Kinds of steps.
const (
	// StepRestore fills a new generation from the backups of the active one.
	StepRestore = "Restore"
	// StepUndo goes back to a generation that is kept.
	StepUndo = "Undo"
	// StepUpgrade fills a generation of a later major version with the data of the active one.
	StepUpgrade = "Upgrade"
	// StepUndoUpgrade goes back to the generation before an upgrade, which is kept.
	StepUndoUpgrade = "UndoUpgrade"
	// StepPromote is a promotion that is never carried out, because the Database was created with its id.
	StepPromote = "Promote"
)

// A Step switches clients from one generation to another.
type Step struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	From int    `json:"from"`
	To   int    `json:"to"`

	// At is the moment to restore, or RestorePoint its name; neither is the latest.
	At           v1alpha1.Moment           `json:"at,omitempty"`
	RestorePoint v1alpha1.RestorePointName `json:"restorePoint,omitempty"`

	// Phase is RestoreFilling or RestoreFencing, and Since when it began.
	Phase v1alpha1.RestorePhase `json:"phase"`
	Since time.Time             `json:"since"`

	// When the active generation began to be fenced: for how many seconds writes are expected to wait for an upgrade, its leader, and whether
	// members decide the outcome, as their images allow. They never do for an undo.
	Gap     int64  `json:"gap,omitempty"`
	Led     string `json:"led,omitempty"`
	Decided bool   `json:"decided,omitempty"`
}

// IsUpgrade reports whether the step is about an upgrade.
func (s Step) IsUpgrade() bool { return s.Kind == StepUpgrade || s.Kind == StepUndoUpgrade }

// A Kept is stopped until its members are removed.
type Kept struct {
	Generation int       `json:"generation"`
	ID         string    `json:"id"`
	Until      time.Time `json:"until"`

	// Fenced reports that its members held a fence, and its leader has stopped in good order before the other members.
	Fenced bool   `json:"fenced,omitempty"`
	Led    string `json:"led,omitempty"`
}

// A Done request was carried out, or never will be.
type Done struct {
	ID    string                `json:"id"`
	State v1alpha1.RestorePhase `json:"state"`
	From  int                   `json:"from,omitempty"`
	To    int                   `json:"to,omitempty"`
	When  time.Time             `json:"when"`

	// Kind is stepUpgrade, or nothing for a restore; Why it failed.
	Kind string `json:"kind,omitempty"`
	Why  string `json:"why,omitempty"`

	At           v1alpha1.Moment           `json:"at,omitempty"`
	RestorePoint v1alpha1.RestorePointName `json:"restorePoint,omitempty"`
}

// A Promotion ended that a Database is a standby or is imported, for good.
type Promotion struct {
	ID   string    `json:"id"`
	When time.Time `json:"when"`
}

// DoneKept is how many requests are remembered. They are a few hundred bytes each.
const DoneKept = 32

// Generation is the active generation.
func (m Memory) Generation() int { return max(1, m.Active) }

// IsEmpty memory: nothing ever happened.
func (m Memory) IsEmpty() bool {
	return m.Active == 0 && m.Last == 0 && m.Step == nil && len(m.Done) == 0 && m.Promoted == nil && m.Imported == nil
}

// Restored is what became of a restore.
func (m Memory) Restored(id string) (Done, bool) { return m.doneAs("", id) }

// Upgraded is what became of an upgrade.
func (m Memory) Upgraded(id string) (Done, bool) { return m.doneAs(StepUpgrade, id) }

// SkippedPromotion reports whether the Database was created with the id of a promotion.
func (m Memory) SkippedPromotion(id string) bool {
	_, skipped := m.doneAs(StepPromote, id)
	return skipped
}

func (m Memory) doneAs(kind, id string) (Done, bool) {
	i := slices.IndexFunc(m.Done, func(d Done) bool { return d.Kind == kind && d.ID == id })
	if i < 0 {
		return Done{}, false
	}
	return m.Done[i], true
}

// Keeps reports whether a generation is kept.
func (m Memory) Keeps(generation int) bool {
	return slices.ContainsFunc(m.Kept, func(k Kept) bool { return k.Generation == generation })
}

// Generations that exist: the active one, the next one, and those kept.
func (m Memory) Generations() []int {
	all := []int{m.Generation()}
	if m.Step != nil {
		all = append(all, m.Step.From, m.Step.To)
	}
	for _, k := range m.Kept {
		all = append(all, k.Generation)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Copy memory, which can be changed.
func (m Memory) Copy() Memory {
	m.Kept, m.Done, m.Versions = slices.Clone(m.Kept), slices.Clone(m.Done), maps.Clone(m.Versions)
	if m.Step != nil {
		step := *m.Step
		m.Step = &step
	}
	return m
}

// Text of the memory, as it is kept.
func (m Memory) Text() string {
	if m.IsEmpty() {
		return ""
	}
	return encoding.JSON(m)
}

// A Recollection is what is known of the memory in this pass.
type Recollection struct {
	Memory Memory

	// Known reports that the Secret was read, and Unread that its content cannot be parsed, or is missing although there is more than
	// the first generation.
	Known, Unread bool

	// The first is what the Secret has, and Pending is what it is about to have: until then nothing else is decided.
	Told, Pending string

	// ToCome are generations of what is pending.
	ToCome []int
}

// Recall the memory. As long as it is not known, the generation is the one that was active before, and nothing that exists is
// removed.
func Recall(q compose.Request) Recollection {
	var r Recollection
	if o := q.Observed[names.AccessCredential]; o != nil && compose.Text(o.Map(), "status", "atProvider", "identity") != "" {
		r.Told = compose.Text(o.Map(), "status", "atProvider", "remembered")
		r.Unread = r.Told != "" && json.Unmarshal([]byte(r.Told), &r.Memory) != nil
		// The memory is written before the second generation begins, and is never empty afterwards.
		r.Unread = r.Unread || r.Told == "" && laterGenerations(q)
		r.Known = !r.Unread
		if desired := compose.Text(o.Map(), "spec", "forProvider", "remember"); desired != "" && desired != r.Told {
			var next Memory
			if json.Unmarshal([]byte(desired), &next) == nil {
				r.Pending, r.ToCome = desired, next.Generations()
			}
		}
	}
	if !r.Known {
		r.Memory = Memory{Active: guessed(q)}
	}
	return r
}

// laterGenerations reports whether there is more than the first generation, by the status or by the objects that exist.
func laterGenerations(q compose.Request) bool {
	if compose.Number(q.Composite.Map(), 0, "status", "generation", "active") > 1 {
		return true
	}
	for resource := range q.Observed {
		if g, ok := names.GenerationOf(resource); ok && g > 1 {
			return true
		}
	}
	return false
}

// guessed generation: the one in the status, or else the first with members that are not stopped.
func guessed(q compose.Request) int {
	if n := compose.Number(q.Composite.Map(), 0, "status", "generation", "active"); n > 0 {
		return int(n)
	}
	var running []int
	for resource, o := range q.Observed {
		if g, ok := names.GenerationOf(resource); ok && strings.HasPrefix(resource, names.MemberPrefix) &&
			compose.Number(o.Map(), 1, "spec", "replicas") > 0 {
			running = append(running, g)
		}
	}
	if len(running) == 0 {
		return 1
	}
	return slices.Min(running)
}

// fenceLimit is how long the active generation may be fenced before it continues, in addition to several times the duration of
// the upgrade of the copy.
const fenceLimit = 5 * time.Minute

// FencedUntil is when the fence of an upgrade or a restore that does not end is removed.
func (s Step) FencedUntil() time.Time {
	return s.Since.Add(fenceLimit + 5*time.Duration(s.Gap)*time.Second)
}

// heldLimit is how long members hold a fence at least. It is shorter than the time after which Capstan requests its end, because they may have to end it alone.
const heldLimit = 3 * time.Minute

// HeldFor is how many seconds members wait for the other generation before they end a fence.
func (s Step) HeldFor() int64 { return int64(heldLimit/time.Second) + 3*s.Gap }
