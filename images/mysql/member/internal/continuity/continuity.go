// SPDX-License-Identifier: Apache-2.0

// Package continuity computes whether an archive of binary logs has every transaction. It goes by sets of transactions, never by names of
// files: members write the same transactions to files of their own.
//
// Numbers that a member skips, because each one takes a block of its own, are in no set and are missed by nothing.
package continuity

import "github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"

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

// Archived transactions: of all logs.
func Archived(logs []Log) gtid.Set {
	var out gtid.Set
	for _, l := range logs {
		out = out.Union(l.Set)
	}
	return out
}

// Missing before the end of a log: what was executed until then, and neither a backup nor any of the logs has. Without it everything until
// then can be restored from the backup.
func Missing(end Log, logs []Log, backup gtid.Set) gtid.Set {
	return end.until().Minus(backup).Minus(Archived(logs))
}

// Gap of an archive: transactions older than the last one that it has, which neither a backup nor any log has. No moment behind them can be
// restored from the backup.
func Gap(logs []Log, backup gtid.Set) gtid.Set {
	var seen gtid.Set
	for _, l := range logs {
		seen = seen.Union(l.until())
	}
	return seen.Minus(backup).Minus(Archived(logs))
}

// Lost to the archive: what was executed and will never be in it, because neither a backup, nor the archive, nor any file that waits for it has
// it. It is a Gap as soon as the archive has anything behind it.
func Lost(executed, backup, archived, waiting gtid.Set) gtid.Set {
	return executed.Minus(backup).Minus(archived).Minus(waiting)
}
