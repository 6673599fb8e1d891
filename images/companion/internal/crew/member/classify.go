// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"

	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
	"github.com/capstan-dev/capstan/images/companion/internal/process"
)

// classify the end of a rank. Nil: it ended well.
func classify(rank int, exit process.Exit, last string, mem process.MemoryNow, folder string) *protocol.Fault {
	e := process.Explain(exit, last, mem)
	if e == nil {
		return nil
	}
	f := &protocol.Fault{Rank: rank, Class: e.Class, Lines: last, Secondary: e.Secondary, Message: e.Message}
	if exit.Err != nil {
		return f
	}
	if e.Full && folder != "" {
		f.Message += ": make room in the folder of checkpoints " + folder
	}
	f.Message = fmt.Sprintf("rank %d %s", rank, f.Message)
	if line := process.LastLine(last); line != "" {
		f.Message += ": " + line
	}
	return f
}

// counts reports whether a fault is the attempt's, after the one that was reported before, if any. Ranks of one pod may end within one
// moment and be seen in any order, so that one which caused another is seen last, or when the ranks are killed already. A rank that is
// being killed has faults of its own only up to then: own is false when a signal ended it.
func counts(before, f *protocol.Fault, halted protocol.How, own bool) bool {
	switch halted {
	case "":
		return before == nil || before.Secondary && !f.Secondary
	case protocol.Kill:
		return own && !f.Secondary && (before == nil || before.Secondary)
	default: // A rank may end in any way when it gets such a signal.
		return false
	}
}
