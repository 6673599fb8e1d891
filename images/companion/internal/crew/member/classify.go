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
