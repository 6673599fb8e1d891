// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
)

// A memory is what a Database has to know of its generations whatever becomes of it. It is kept with the Secret of the first
// Credential, which outlives the Database together with its volumes: an annotation there, which the Credential writes from its
// field remember and tells in its status. What happens next is written down first, and done once the Secret has it. Without a
// memory there is generation 1 and nothing to be done.
type memory struct {
	// Active is the generation that clients are switched to, and Since when they were; no number is 1.
	Active int        `json:"active,omitempty"`
	Since  *time.Time `json:"since,omitempty"`

	// Last is the highest number that was ever given: none is given twice, because the volumes of a generation stay when it goes.
	Last int `json:"last,omitempty"`

	// Step that is under way.
	Step *generationStep `json:"step,omitempty"`

	// Kept generations are stopped.
	Kept []keptGeneration `json:"kept,omitempty"`

	// Done are the wishes that were carried out, oldest first.
	Done []doneRestore `json:"done,omitempty"`

	// Versions are the major versions of the data of generations, once there was an upgrade.
	Versions map[int]string `json:"versions,omitempty"`
}

// Kinds of steps.
const (
	// stepRestore fills a new generation from the backups of the active one.
	stepRestore = "Restore"
	// stepUndo goes back to a generation that is kept.
	stepUndo = "Undo"
	// stepUpgrade fills a generation of a later major version with the data of the active one.
	stepUpgrade = "Upgrade"
	// stepUndoUpgrade goes back to the generation before an upgrade, which is kept.
	stepUndoUpgrade = "UndoUpgrade"
)

// A generationStep leads clients from one generation to another.
type generationStep struct {
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

	// Gap in seconds that writes were expected to wait, and Led the member that led, when an upgrade began to fence the active
	// generation.
	Gap int64  `json:"gap,omitempty"`
	Led string `json:"led,omitempty"`
}

// upgrades reports whether the step is about an upgrade.
func (s generationStep) upgrades() bool { return s.Kind == stepUpgrade || s.Kind == stepUndoUpgrade }

// A keptGeneration is stopped until its members are removed.
type keptGeneration struct {
	Generation int       `json:"generation"`
	ID         string    `json:"id"`
	Until      time.Time `json:"until"`

	// Fenced reports that an upgrade fenced it, and so that its leader has stopped in good order before its members are; Led is
	// that leader.
	Fenced bool   `json:"fenced,omitempty"`
	Led    string `json:"led,omitempty"`
}

// A doneRestore was carried out, or is never to be.
type doneRestore struct {
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

// doneKept is how many wishes are remembered. They are a few hundred bytes each.
const doneKept = 32

// active generation.
func (m memory) active() int { return max(1, m.Active) }

// empty memory: nothing ever happened.
func (m memory) empty() bool {
	return m.Active == 0 && m.Last == 0 && m.Step == nil && len(m.Done) == 0
}

// done is what became of a restore.
func (m memory) done(id string) (doneRestore, bool) { return m.doneAs("", id) }

// upgraded is what became of an upgrade.
func (m memory) upgraded(id string) (doneRestore, bool) { return m.doneAs(stepUpgrade, id) }

func (m memory) doneAs(kind, id string) (doneRestore, bool) {
	i := slices.IndexFunc(m.Done, func(d doneRestore) bool { return d.Kind == kind && d.ID == id })
	if i < 0 {
		return doneRestore{}, false
	}
	return m.Done[i], true
}

// keeps reports whether a generation is kept.
func (m memory) keeps(generation int) bool {
	return slices.ContainsFunc(m.Kept, func(k keptGeneration) bool { return k.Generation == generation })
}

// generations that there are: the active one, the one that is gone to, those kept.
func (m memory) generations() []int {
	all := []int{m.active()}
	if m.Step != nil {
		all = append(all, m.Step.From, m.Step.To)
	}
	for _, k := range m.Kept {
		all = append(all, k.Generation)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// copied memory, which can be changed.
func (m memory) copied() memory {
	m.Kept, m.Done, m.Versions = slices.Clone(m.Kept), slices.Clone(m.Done), maps.Clone(m.Versions)
	if m.Step != nil {
		step := *m.Step
		m.Step = &step
	}
	return m
}

// text of the memory, as it is kept.
func (m memory) text() string {
	if m.empty() {
		return ""
	}
	return encoding.JSON(m)
}

// A recollection is what is known of the memory in this pass.
type recollection struct {
	memory memory

	// known reports that the Secret was seen, and unread that it has what nobody can read.
	known, unread bool

	// told is what the Secret has, and pending what it is about to have: until then nothing else is decided.
	told, pending string

	// toCome are generations of what is pending.
	toCome []int
}

// recall the memory. As long as it is not known, the generation is the one that was active before, and nothing that exists is
// removed.
func recall(q compose.Request) recollection {
	var r recollection
	if o := q.Observed[nameAccessCredential]; o != nil && compose.Text(o.Map(), "status", "atProvider", "identity") != "" {
		r.told = compose.Text(o.Map(), "status", "atProvider", "remembered")
		r.unread = r.told != "" && json.Unmarshal([]byte(r.told), &r.memory) != nil
		r.known = !r.unread
		if asked := compose.Text(o.Map(), "spec", "forProvider", "remember"); asked != "" && asked != r.told {
			var next memory
			if json.Unmarshal([]byte(asked), &next) == nil {
				r.pending, r.toCome = asked, next.generations()
			}
		}
	}
	if !r.known {
		r.memory = memory{Active: guessed(q)}
	}
	return r
}

// memoryBlocks says why no restore or upgrade can be begun, if it is not known what was done before, or another one is under way.
func (s *cluster) memoryBlocks(waiting xpv2.ConditionReason) (xpv2.ConditionReason, string) {
	switch {
	case s.unread:
		return v1alpha1.ReasonMemoryUnread, fmt.Sprintf("what is kept of earlier restores and upgrades cannot be read, and nothing is restored or upgraded: "+
			"see the annotation credentials.capstan.dev/remembered of Secret %q", s.called(suffixAccess))
	case !s.known:
		return waiting, fmt.Sprintf("waiting for Credential %q to tell what was restored or upgraded before: see whether provider-capstan runs", s.called(suffixAccess))
	case s.memory.Step != nil:
		return waiting, s.memory.Step.ID + " is under way: it begins once that is over"
	default:
		return "", ""
	}
}

// guessed generation: the one that the status tells, or else the first that has members which are not stopped.
func guessed(q compose.Request) int {
	if n := compose.Number(q.Composite.Map(), 0, "status", "generation", "active"); n > 0 {
		return int(n)
	}
	var running []int
	for resource, o := range q.Observed {
		if g, ok := generationOf(resource); ok && strings.HasPrefix(resource, nameMemberPrefix) &&
			compose.Number(o.Map(), 1, "spec", "replicas") > 0 {
			running = append(running, g)
		}
	}
	if len(running) == 0 {
		return 1
	}
	return slices.Min(running)
}

// ofGenerations are the names within the composition of what each generation has, beside its members.
var ofGenerations = []string{nameTopology, nameConfig, nameDCS, nameServiceAccount, nameRoleBinding, nameVolumeClaim}

// generationOf an object, if it belongs to one.
func generationOf(resource string) (int, bool) {
	name, generation := resource, 1
	if i := strings.LastIndex(resource, "-g"); i > 0 {
		if n, err := strconv.Atoi(resource[i+2:]); err == nil && n > 1 {
			name, generation = resource[:i], n
		}
	}
	letter, member := strings.CutPrefix(name, nameMemberPrefix)
	return generation, slices.Contains(ofGenerations, name) || member && slices.Contains(letters, letter)
}

// generations whose objects stay: those that are known and those to come.
func (s *cluster) generations() []int {
	all := append(s.memory.generations(), s.toCome...)
	if !s.known {
		for resource := range s.Observed {
			if g, ok := generationOf(resource); ok {
				all = append(all, g)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// forgotten generations are removed: what they had was observed, and nothing knows of them any more. Their volumes stay.
func forgotten(d *compose.Draft, s *cluster) {
	stay := s.generations()
	for resource := range s.Observed {
		if g, ok := generationOf(resource); ok && !slices.Contains(stay, g) {
			d.Remove(resource)
		}
	}
}

// isMemoryPending reports that something is to be written down before there are members.
func (s *state) isMemoryPending() bool { return s.known && s.remember != s.told }
