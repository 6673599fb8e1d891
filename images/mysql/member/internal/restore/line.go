// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/continuity"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

// clocks of members differ by less.
const clocks = time.Minute

// A piece of an archive: a backup or a log.
type piece struct {
	// until is what its server had executed with it.
	until gtid.Set
	// first and last are when what is in it was committed. A backup has all that was committed before it ended.
	first, last time.Time
}

// pieces of an archive.
func pieces(backups []repository.Backup, logs []repository.Log) []piece {
	all := make([]piece, 0, len(backups)+len(logs))
	for _, b := range backups {
		all = append(all, piece{b.Until(), b.Ended, b.Ended})
	}
	for _, l := range logs {
		all = append(all, piece{l.Until(), l.First, l.Last})
	}
	return all
}

// A Split reports that an archive has several histories, and that it does not show which one continues.
type Split struct { //nolint:errname // restore.Split says it.
	// Ends of the histories, with what each one has alone.
	Ends []End
}

// An End of a history.
type End struct {
	// Alone are the transactions that no other history has, and First and Last when they were committed. First may be earlier.
	Alone       gtid.Set
	First, Last time.Time
}

func (s *Split) Error() string {
	first := s.Ends[0].First
	texts := make([]string, 0, len(s.Ends))
	for _, e := range s.Ends {
		if e.First.Before(first) {
			first = e.First
		}
		texts = append(texts, fmt.Sprintf("one ends at %s and has %s alone", stamp(e.Last), e.Alone))
	}
	return fmt.Sprintf("the archive has several histories of the data, and it is not sure which one continues: %s. Choose a time before %s, or a restore point, "+
		"or wait until more is archived", strings.Join(texts, ", "), stamp(first))
}

// line of the history that the target is in. A history ends when a group begins with less than all transactions: what it has alone is replayed
// under no other one. A time is in the history that there was then, and without a target it is the present one.
func (t Target) line(backups []repository.Backup, logs []repository.Log) ([]repository.Backup, []repository.Log, error) {
	end, err := t.end(pieces(backups, logs))
	if err != nil {
		return nil, nil, err
	}
	backups = slices.DeleteFunc(slices.Clone(backups), func(b repository.Backup) bool { return !continuity.Same(end, b.Set) })
	logs = slices.DeleteFunc(slices.Clone(logs), func(l repository.Log) bool { return !continuity.Same(end, l.Until()) })
	return backups, logs, nil
}

// end of the history that the target is in: all of it there is, or that had begun by then.
func (t Target) end(all []piece) (gtid.Set, error) {
	if t.Point != nil {
		return t.Point.Set, nil
	}
	if t.At != nil {
		all = slices.DeleteFunc(all, func(p piece) bool { return p.first.After(*t.At) })
	}
	sets := make([]gtid.Set, 0, len(all))
	for _, p := range all {
		sets = append(sets, p.until)
	}
	sets = continuity.Ends(sets)
	if len(sets) == 0 {
		return gtid.Set{}, nil
	}
	for i, one := range sets {
		others := slices.Delete(slices.Clone(sets), i, i+1)
		if !slices.ContainsFunc(others, func(other gtid.Set) bool { return !later(one, other, all) }) {
			return one, nil
		}
	}
	s := &Split{}
	for i, one := range sets {
		alone := one
		for _, other := range slices.Delete(slices.Clone(sets), i, i+1) {
			alone = alone.Minus(other)
		}
		s.Ends = append(s.Ends, alonein(one, alone, all))
	}
	return gtid.Set{}, s
}

// later reports whether a history is surely later than another one: it has transactions of a group that the other one knows nothing of, and was
// not left before. When that says nothing, what it has alone was committed later by more than clocks differ.
func later(one, other gtid.Set, all []piece) bool {
	last, before := alonein(one, one.Minus(other), all).Last, alonein(other, other.Minus(one), all).Last
	if more := one.FromMore(other); more != other.FromMore(one) {
		return more && !last.Before(before)
	}
	return last.Add(-clocks).After(before)
}

// alonein a history: when some of its transactions were committed.
func alonein(history, alone gtid.Set, all []piece) End {
	e := End{Alone: alone}
	for _, p := range all {
		if !history.Contains(p.until) || p.until.Minus(alone).Contains(p.until) {
			continue
		}
		if e.First.IsZero() || p.first.Before(e.First) {
			e.First = p.first
		}
		if p.last.After(e.Last) {
			e.Last = p.last
		}
	}
	return e
}
