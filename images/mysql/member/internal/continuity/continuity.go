// SPDX-License-Identifier: Apache-2.0

// Package continuity computes whether an archive of binary logs has every transaction. It goes by sets of transactions, never by names of
// files: members write the same transactions to files of their own.
//
// Numbers that a member skips, because each one takes a block of its own, are in no set and are missed by nothing.
package continuity

import (
	"slices"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// A Log is what counts of a binary log.
type Log struct {
	// Previous has all transactions that its server had executed before it, and Set its own.
	Previous, Set gtid.Set
}

// until its end, all that its server had executed.
func (l Log) until() gtid.Set { return l.Previous.Union(l.Set) }

// Of one history only, the logs that have and follow on nothing but what was executed. Others are of a history that ended: a group began
// with less than all transactions. They count for nothing in this one.
func Of(executed gtid.Set, logs []Log) []Log {
	var out []Log
	for _, l := range logs {
		if executed.Contains(l.until()) {
			out = append(out, l)
		}
	}
	return out
}

// Same reports whether two servers were in one history when they had executed these sets: one has all of the other, or all is of the same
// groups. A group that began with less than all transactions lacks some, and has ones of its own name.
func Same(a, b gtid.Set) bool {
	return a.Contains(b) || b.Contains(a) || !a.FromMore(b) && !b.FromMore(a)
}

// Ends of the histories in an archive, by what servers had executed: no two of them are the same history. It is one unless a history ended.
func Ends(executed []gtid.Set) []gtid.Set {
	var out []gtid.Set
	for _, one := range executed {
		if slices.ContainsFunc(out, func(end gtid.Set) bool { return end.Contains(one) }) {
			continue
		}
		for _, end := range out {
			if Same(end, one) {
				one = one.Union(end)
			}
		}
		out = append(slices.DeleteFunc(out, one.Contains), one)
	}
	return out
}

// Archived transactions: of all logs.
func Archived(logs []Log) gtid.Set {
	var out gtid.Set
	for _, l := range logs {
		out = out.Union(l.Set)
	}
	return out
}

// Gap of an archive: what was executed and neither a backup, nor the archive, nor any file that waits for it has. It will never be in the
// archive, and no moment behind it can be restored from the backup.
func Gap(executed, backup, archived, waiting gtid.Set) gtid.Set {
	return executed.Minus(backup).Minus(archived).Minus(waiting)
}
