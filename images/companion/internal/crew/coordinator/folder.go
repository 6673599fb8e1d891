// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"fmt"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/checkpoints"
)

// Times of looks at the folder of checkpoints while ranks run.
const (
	// lookEvery is the time between two looks, and lookSoonest the least time of that after a rank reported a checkpoint.
	lookEvery   = 30 * time.Second
	lookSoonest = 2 * time.Second
	// removeAgain is the time until what could not be removed is tried again.
	removeAgain = time.Minute
)

// A folder of checkpoints, as it is seen beside the attempts.
type folder struct {
	// looking: a look is under way that no attempt waits for. due: one should follow soon.
	looking  bool
	due      bool
	lookedAt time.Time
	// others are complete checkpoints that were there before this coordinator, by URI. Nil: it has not looked.
	others map[string]bool
	// removing are the names that are about to be removed, removeAt is when others may be, and unremoved why some stay.
	removing  []string
	removeAt  time.Time
	unremoved string
	// latest is when the newest checkpoint became complete, unsaved how long ranks have made steps since then, and since when.
	latest  time.Time
	unsaved time.Duration
	since   time.Time
}

// stepped: ranks made steps from one time to another. Times before their first step do not count.
func (f *folder) stepped(from, to time.Time) {
	if from.IsZero() || !to.After(from) {
		return
	}
	if f.since.IsZero() {
		f.since = from
	}
	f.unsaved += to.Sub(from)
}

// overdueSince is since when a checkpoint is overdue. Nil: none is.
func (f *folder) overdueSince(p crew.Plan) *time.Time {
	if p.Checkpoints == nil || p.Checkpoints.EverySeconds < 1 {
		return nil
	}
	if f.unsaved <= crew.OverdueAfter*time.Duration(p.Checkpoints.EverySeconds)*time.Second {
		return nil
	}
	return new(f.since.UTC().Truncate(time.Second))
}

// keep is the number of steps whose checkpoints stay. 0: all stay.
func (m *Machine) keep() int {
	if m.plan.Checkpoints == nil {
		return 0
	}
	return m.plan.Checkpoints.Keep
}

// watches reports whether the folder says something while ranks run that they do not say themselves.
func (m *Machine) watches() bool {
	c := m.plan.Checkpoints
	return c != nil && (c.Complete != "" || c.Keep > 0 || c.EverySeconds > 0)
}

// mayLook reports whether it is time to look at the folder beside the attempts.
func (m *Machine) mayLook(now time.Time) bool {
	if !m.watches() || !m.restored {
		return false
	}
	since := now.Sub(m.folder.lookedAt)
	switch m.phase {
	case running:
		usual := lookEvery
		if every := time.Duration(m.plan.Checkpoints.EverySeconds) * time.Second; every > 0 {
			usual = max(lookSoonest, min(usual, every))
		}
		return since >= usual || m.folder.due && since >= lookSoonest
	case gathering:
		return m.folder.due
	case ended:
		// What is about to be removed is not seen twice.
		return m.folder.due && m.keep() > 0 && len(m.folder.removing) == 0
	default:
		return false
	}
}

// looked: what is in the folder now. Nothing is forgotten that is not seen: another node may have written it just now.
func (m *Machine) looked(now time.Time, f Found) []Action {
	m.folder.looking = false
	if f.Err != nil {
		return nil // An attempt that cannot begin without the folder says so.
	}
	var actions []Action
	if m.own(f) {
		actions = m.record()
	}
	if usable := checkpoints.Without(checkpoints.Merge(f.Complete, m.reported), m.discarded); len(usable) > 0 {
		m.newest = &usable[0]
	}
	m.freshen(m.usable(f))
	return append(actions, m.remove(now, f)...)
}

// own complete checkpoints that came while this coordinator ran the ranks: they are known as if a rank had reported them. In a folder of
// several trainings they may be another one's. It reports whether there are any.
func (m *Machine) own(f Found) bool {
	if m.folder.others == nil || f.Shared != "" {
		if m.folder.others == nil {
			m.folder.others = map[string]bool{}
		}
		for _, c := range f.Complete {
			m.folder.others[c.URI] = true
		}
		return false
	}
	var came []crew.Checkpoint
	for _, c := range f.Complete {
		if !m.folder.others[c.URI] && !slices.ContainsFunc(m.reported, func(r crew.Checkpoint) bool { return r.URI == c.URI }) {
			came = append(came, c)
		}
	}
	if len(came) == 0 {
		return false
	}
	m.reported = oldestFirst(checkpoints.Merge(came, m.reported))
	return true
}

// there are known checkpoints that are in the folder, or elsewhere, and not about to be removed.
func (m *Machine) there(f Found) []crew.Checkpoint {
	leaving := m.leaving(m.reported)
	return slices.DeleteFunc(slices.Clone(m.reported), func(c crew.Checkpoint) bool {
		return slices.Contains(f.Gone, c.URI) || slices.Contains(leaving, c)
	})
}

// leaving are the checkpoints that are about to be removed.
func (m *Machine) leaving(all []crew.Checkpoint) []crew.Checkpoint {
	if len(m.folder.removing) == 0 {
		return nil
	}
	return checkpoints.Of(m.plan).Named(all, m.folder.removing)
}

// usable checkpoints, the newest first.
func (m *Machine) usable(f Found) []crew.Checkpoint {
	leaving := m.leaving(f.Complete)
	complete := slices.DeleteFunc(slices.Clone(f.Complete), func(c crew.Checkpoint) bool { return slices.Contains(leaving, c) })
	return checkpoints.Without(checkpoints.Merge(complete, m.there(f)), m.discarded)
}

// freshen what is known of the newest checkpoint: one that became complete since the last look ends the time without one.
func (m *Machine) freshen(usable []crew.Checkpoint) {
	for _, c := range usable {
		if c.At.After(m.folder.latest) {
			m.folder.latest, m.folder.unsaved, m.folder.since = c.At, 0, time.Time{}
		}
	}
}

// remove what is older than the checkpoints that the plan keeps.
func (m *Machine) remove(now time.Time, f Found) []Action {
	if m.keep() == 0 || len(m.folder.removing) > 0 || now.Before(m.folder.removeAt) || m.phase != running && m.phase != ended {
		return nil
	}
	where, known := checkpoints.Of(m.plan), m.there(f)
	m.folder.unremoved = elsewhere(where, known, f.Shared)
	names := where.Surplus(known, m.discarded, m.keep(), m.hold())
	if len(names) == 0 {
		return nil
	}
	m.folder.removing = names
	kept := slices.DeleteFunc(where.Names(checkpoints.Merge(known, f.Complete)), func(name string) bool { return slices.Contains(names, name) })
	return []Action{Remove{Names: names, Kept: kept}}
}

// hold what the attempt began with. After success nothing does any more.
func (m *Machine) hold() checkpoints.Hold {
	a := m.attempt
	if a == nil || m.phase == ended && m.code == crew.ExitDone {
		return checkpoints.Hold{}
	}
	return checkpoints.Hold{From: a.resume, Back: !a.beyond(), URI: m.plan.ResumeFrom}
}

// elsewhere says why nothing is removed: the folder is not of this training alone, or the newest checkpoint is not in it. Empty: it is, or
// there is none.
func elsewhere(where checkpoints.Folder, known []crew.Checkpoint, shared string) string {
	if shared != "" && where.Complete != "" {
		return fmt.Sprintf("checkpoint.keep removes only checkpoints that ranks report, because the folder %s is the one of Training %s, too: give each its own checkpoint.subPath, "+
			"or remove the file .capstan-%s.json there if that Training is gone", where.Dir, shared, shared)
	}
	if len(known) == 0 {
		return ""
	}
	newest := checkpoints.Merge(known)[:1]
	if len(where.Names(newest)) > 0 {
		return ""
	}
	return fmt.Sprintf("checkpoint.keep removes only checkpoints in the folder %s, and ranks report %s: let the program remove old ones, or a rule of its bucket",
		where.Dir, shorten(newest[0].URI, 200))
}

// removed: some names are gone. What an error left is tried again later.
func (m *Machine) removed(now time.Time, e Removed) []Action {
	gone := checkpoints.Of(m.plan).Named(m.reported, e.Names)
	m.folder.removing = nil
	m.reported = slices.DeleteFunc(m.reported, func(c crew.Checkpoint) bool { return slices.Contains(gone, c) })
	if e.Err != nil {
		m.folder.unremoved, m.folder.removeAt = e.Err.Error(), now.Add(removeAgain)
	}
	if len(gone) == 0 {
		return nil
	}
	if m.newest != nil && slices.Contains(gone, *m.newest) {
		m.renew() // What is newer was discarded meanwhile.
	}
	return m.record()
}
