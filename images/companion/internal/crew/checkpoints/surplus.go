// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
)

// name of a checkpoint in the folder, relative to it and with slashes. With a pattern, it is the first folder of the path. What is elsewhere
// has none, and neither has the folder itself.
func (f Folder) name(uri string) (string, bool) {
	if scheme.MatchString(uri) {
		return "", false
	}
	if !filepath.IsAbs(uri) {
		uri = filepath.Join(f.Dir, uri)
	}
	below, err := filepath.Rel(f.Dir, uri)
	if err != nil || below == "." || !filepath.IsLocal(below) || strings.ContainsRune(below, 0) || strings.HasPrefix(below, ownPrefix) {
		return "", false
	}
	below = filepath.ToSlash(below)
	if f.Complete != "" {
		below, _, _ = strings.Cut(below, "/")
	}
	return below, true
}

// Names of checkpoints that are in the folder.
func (f Folder) Names(all []crew.Checkpoint) []string {
	var names []string
	for _, c := range all {
		if name, ok := f.name(c.URI); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Named returns the checkpoints that have one of these names in the folder.
func (f Folder) Named(all []crew.Checkpoint, names []string) []crew.Checkpoint {
	return slices.DeleteFunc(slices.Clone(all), func(c crew.Checkpoint) bool {
		name, ok := f.name(c.URI)
		return !ok || !slices.Contains(names, name)
	})
}

// A Hold is what stays although newer checkpoints are there.
type Hold struct {
	// From is the checkpoint that ranks began with. Nil: none of this training's.
	From *crew.Checkpoint
	// Back: ranks may have to go back to a checkpoint before From, which may have the loss that is not a number already.
	Back bool
	// URI of a checkpoint of another run that ranks began with.
	URI string
}

// place of a checkpoint among the others.
type place struct {
	step   int64
	at     time.Time
	usable bool
	held   bool
}

// Surplus returns the names of known checkpoints that can go when as many steps stay as keep says, the newest of the ones that can be used.
// Checkpoints of one step are one, because ranks may write one each. What goes has an earlier step and an earlier time than everything
// that is counted: a program that begins again with its first step loses none of its own.
func (f Folder) Surplus(known []crew.Checkpoint, discarded []Discard, keep int, hold Hold) []string {
	if keep < 1 {
		return nil
	}
	places := f.places(known, discarded)
	steps := usableSteps(places)
	if len(steps) < keep {
		return nil
	}
	f.hold(places, steps, hold)
	cutoff := steps[keep-1]
	var first time.Time // of what is counted
	for _, p := range places {
		if p.usable && p.step >= cutoff && (first.IsZero() || p.at.Before(first)) {
			first = p.at
		}
	}
	var surplus, stay []string
	for name, p := range places {
		if p.step < cutoff && p.at.Before(first) && !p.held {
			surplus = append(surplus, name)
		} else {
			stay = append(stay, name)
		}
	}
	surplus = slices.DeleteFunc(surplus, func(name string) bool {
		return slices.ContainsFunc(stay, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
	slices.Sort(surplus)
	return surplus
}

// places of known checkpoints by name. One that is known by several URIs has the latest step and time of them.
func (f Folder) places(known []crew.Checkpoint, discarded []Discard) map[string]*place {
	places := map[string]*place{}
	for _, c := range known {
		name, ok := f.name(c.URI)
		if !ok {
			continue
		}
		p := places[name]
		if p == nil {
			p = &place{}
			places[name] = p
		}
		p.step = max(p.step, c.Step)
		if c.At.After(p.at) {
			p.at = c.At
		}
		p.usable = p.usable || len(Without([]crew.Checkpoint{c}, discarded)) > 0
	}
	return places
}

// usableSteps in places, the latest first.
func usableSteps(places map[string]*place) []int64 {
	var steps []int64
	for _, p := range places {
		if p.usable {
			steps = append(steps, p.step)
		}
	}
	slices.Sort(steps)
	slices.Reverse(steps)
	return slices.Compact(steps)
}

// hold what ranks began with, and what they may go back to.
func (f Folder) hold(places map[string]*place, steps []int64, hold Hold) {
	if name, ok := f.name(hold.URI); ok && places[name] != nil {
		places[name].held = true
	}
	if hold.From == nil {
		return
	}
	if name, ok := f.name(hold.From.URI); ok && places[name] != nil {
		places[name].held = true
	}
	back := int64(-1)
	if at := slices.IndexFunc(steps, func(step int64) bool { return step < hold.From.Step }); hold.Back && at >= 0 {
		back = steps[at]
	}
	for _, p := range places {
		if p.step == hold.From.Step || p.step == back && p.usable {
			p.held = true
		}
	}
}
