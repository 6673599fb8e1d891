// SPDX-License-Identifier: Apache-2.0

// Package restore makes the data of a moment: it chooses a backup and binary logs, loads the backup, and replays the logs over it up to the
// moment.
package restore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/continuity"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

// A Target is where a restore ends. The zero value is the latest that was archived.
type Target struct {
	// At is a time. What was committed at it or before is restored.
	At *time.Time
	// Point is a moment with a name.
	Point *Point
}

// A Point is a moment with a name.
type Point struct {
	Name, At string
	// Set has all transactions up to it.
	Set gtid.Set
}

// ends reports whether a transaction is after the target.
func (t Target) ends(one gtid.Set, at time.Time) bool {
	switch {
	case t.Point != nil:
		return !t.Point.Set.Contains(one)
	case t.At != nil:
		return at.After(*t.At)
	}
	return false
}

// A Plan is what is restored, and where it ends.
type Plan struct {
	Target

	Backup repository.Backup
	// Logs to replay, in their order. The last ones may have transactions that are after the target.
	Logs []repository.Log
}

// A Gap reports that the archive lacks transactions that come before others in it.
type Gap struct { //nolint:errname // restore.Gap says it.
	// Missing are transactions that are known to be missing.
	Missing gtid.Set
	// Until is when the last transaction before the gap was committed, and From when the first one after it was.
	Until, From time.Time
	// Next is when the first backup after the gap was taken, if there is one.
	Next time.Time
}

func (g *Gap) Error() string {
	more := ""
	if !g.Next.IsZero() {
		more = ", or one from " + stamp(g.Next) + " on, when the next backup was taken"
	}
	return fmt.Sprintf("the archive has a gap: it lacks transactions that were committed between %s and %s, at least %s. Choose a time up to %s%s",
		stamp(g.Until), stamp(g.From), g.Missing, stamp(g.Until), more)
}

// stamp of a time up to which all is there: a time in between cannot be before it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Choose what is restored to reach a target, of the backups of a stanza, oldest first, and its logs. What is of another history than the target
// counts for nothing. The error is a *Split when it is not sure which one that is.
func Choose(backups []repository.Backup, logs []repository.Log, t Target) (Plan, error) {
	known := len(backups)
	backups, logs, err := t.line(backups, logs)
	if err != nil {
		return Plan{}, err
	}
	if t.Point == nil && known > 0 && len(backups) == 0 {
		return Plan{}, fmt.Errorf("all %d backups are of a history that ended, because a group began with less than all transactions, and the present one has none yet: "+
			"choose a time before that, or wait for the next backup", known)
	}
	for _, b := range slices.Backward(backups) {
		if t.after(b, logs) {
			continue
		}
		order, has, gap := t.follow(b, logs)
		if gap != nil {
			gap.next(backups)
		}
		return t.plan(b, order, has, gap, backups)
	}
	return Plan{}, t.early(backups)
}

// after reports whether a backup has more than the target. The clocks of its pod and of the leader may differ, so that what was committed after
// a time counts as well.
func (t Target) after(b repository.Backup, logs []repository.Log) bool {
	switch {
	case t.Point != nil:
		return !t.Point.Set.Contains(b.Set)
	case t.At != nil:
		return b.Ended.After(*t.At) || slices.ContainsFunc(logs, func(l repository.Log) bool {
			return l.First.After(*t.At) && !l.Set.Minus(l.Set.Minus(b.Set)).Empty()
		})
	}
	return false
}

// early says that no backup is before the target.
func (t Target) early(backups []repository.Backup) error {
	if t.Point != nil {
		return fmt.Errorf("spec.from asks for the restore point %q of %s, and the backup before it is kept no longer: choose a later one", t.Point.Name, t.Point.At)
	}
	if len(backups) == 0 {
		return errors.New("there is no backup: see the condition BackupFresh of the source")
	}
	return fmt.Errorf("%s is requested, and the first time that can be restored is %s: choose a later one", stamp(*t.At), stamp(backups[0].Ended))
}

// plan with as many of the logs as the target needs. It is refused if they do not reach it.
func (t Target) plan(b repository.Backup, order []repository.Log, has gtid.Set, gap *Gap, backups []repository.Backup) (Plan, error) {
	p := Plan{Target: t, Backup: b, Logs: order}
	switch {
	case t.Point != nil:
		if !has.Contains(t.Point.Set) {
			if gap != nil {
				return Plan{}, gap
			}
			return Plan{}, fmt.Errorf("the backup before it is there, and what was archived does not reach the restore point %q: it lacks %s; choose another one",
				t.Point.Name, t.Point.Set.Minus(has))
		}
		p.Logs = t.Point.toward(b, order)
		return p, nil
	case gap != nil && (t.At == nil || !gap.From.After(*t.At)):
		// What was committed before the moment may be behind the gap.
		return Plan{}, gap
	case t.At == nil:
		return p, nil
	}
	return p.until(has, gap, backups)
}

// until a time. It is refused if what was archived does not reach it.
func (p Plan) until(has gtid.Set, gap *Gap, backups []repository.Backup) (Plan, error) {
	t, b, order := p.Target, p.Backup, p.Logs
	// What begins after the moment is not needed, and shows that all before it is there. A later log may have something from before it.
	after := func(l repository.Log) bool { return l.First.After(*t.At) }
	if slices.ContainsFunc(order, after) {
		for len(p.Logs) > 0 && after(p.Logs[len(p.Logs)-1]) {
			p.Logs = p.Logs[:len(p.Logs)-1]
		}
		return p, nil
	}
	last := b.Ended
	for _, l := range order {
		if l.Last.After(last) {
			last = l.Last
		}
	}
	// So does a backup that was begun after the moment, when the leader had nothing more. What the backup has says less: a standby may be behind.
	idle := func(b repository.Backup) bool {
		return b.Began.After(*t.At) && !b.Leader.Empty() && has.Contains(b.Leader) && continuity.Same(has, b.Until())
	}
	switch {
	case !last.Before(*t.At) || slices.ContainsFunc(backups, idle):
		return p, nil
	case gap != nil:
		return Plan{}, gap
	}
	return Plan{}, fmt.Errorf("%s is requested, and what was archived ends with what was committed at %s: choose a time up to that, or none for the latest, or wait "+
		"until more is archived", stamp(*t.At), stamp(last))
}

// toward a point: the logs that have what it lacks, without ones that it does not need.
func (p *Point) toward(b repository.Backup, order []repository.Log) (needed []repository.Log) {
	has := b.Set
	for _, l := range order {
		if more := l.Set.Minus(has); p.Set.Minus(more).Contains(p.Set) {
			continue
		}
		needed = append(needed, l)
		has = has.Union(l.Set)
	}
	return needed
}

// reached returns an error when a restore to a point ends with less than it has.
func (t Target) reached(has gtid.Set) error {
	if t.Point == nil || has.Contains(t.Point.Set) {
		return nil
	}
	return fmt.Errorf("the restore point %q is from a moment when one server had %s and no other did, so what others archived does not end with it: choose another restore "+
		"point, or the time %s", t.Point.Name, t.Point.Set.Minus(has), t.Point.At)
}

// follow a backup by the logs that continue it, each one after all that its server had before. A gap is returned when there are more logs that
// do not continue it. Logs with nothing that is after a point are first, because no other ends a restore to it.
func (t Target) follow(b repository.Backup, logs []repository.Log) (order []repository.Log, has gtid.Set, gap *Gap) {
	has = b.Set
	beyond := func(l repository.Log) int {
		if t.Point == nil || t.Point.Set.Contains(l.Set) {
			return 0
		}
		return 1
	}
	left := slices.SortedFunc(slices.Values(logs), func(a, b repository.Log) int {
		return cmp.Or(cmp.Compare(beyond(a), beyond(b)), a.First.Compare(b.First), cmp.Compare(a.Server, b.Server), cmp.Compare(a.File, b.File))
	})
	for until := b.Ended; ; {
		left = slices.DeleteFunc(left, func(l repository.Log) bool { return has.Contains(l.Set) })
		if len(left) == 0 {
			return order, has, nil
		}
		i := slices.IndexFunc(left, func(l repository.Log) bool { return has.Contains(l.Previous) })
		if i < 0 {
			return order, has, &Gap{Missing: left[0].Previous.Minus(has), Until: until, From: left[0].First}
		}
		order = append(order, left[i])
		has = has.Union(left[i].Set)
		if left[i].Last.After(until) {
			until = left[i].Last
		}
	}
}

// next backup after the gap.
func (g *Gap) next(backups []repository.Backup) {
	for _, b := range backups {
		if b.Ended.After(g.Until) && b.Set.Contains(g.Missing) {
			g.Next = b.Ended
			return
		}
	}
}
