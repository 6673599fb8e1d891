// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/ranks"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/watch"
)

// memory is what is known of the container's memory when a rank ended.
type memory struct {
	// killed: the kernel has killed a process for want of memory since the attempt began. known: the control group says so.
	killed, known bool
	// limit in bytes, 0 for none.
	limit int64
}

// classify the end of a rank. Nil: it ended well. A shell reports a signal n that ended its program as the exit code 128 + n.
func classify(rank int, exit ranks.Exit, last string, mem memory, folder string) *protocol.Fault {
	f := &protocol.Fault{Rank: rank, Class: crew.ClassInfrastructure, Lines: last}
	signal := exit.Signal
	if exit.Code > 128 && exit.Code < 128+32 {
		signal = syscall.Signal(exit.Code - 128)
	}
	switch {
	case exit.Err != nil:
		f.Class, f.Message = crew.ClassUser, exit.Err.Error()
		return f
	case signal == 0 && exit.Code == 0:
		return nil
	case signal == syscall.SIGKILL && (mem.killed || !mem.known):
		f.Class = crew.ClassOutOfMemory
		f.Message = "was killed, because the memory of its container was not enough" + limit(mem.limit)
		if !mem.known {
			f.Message = "was killed, which most often means that the memory of its container was not enough" + limit(mem.limit)
		}
	case signal == syscall.SIGKILL || signal == syscall.SIGTERM || signal == syscall.SIGHUP || signal == syscall.SIGINT:
		f.Message = fmt.Sprintf("was ended by the signal %q from elsewhere", signal)
	case signal == syscall.SIGBUS:
		f.Message = fmt.Sprintf("was ended by the signal %q, which most often means that /dev/shm is full: raise resources.sharedMemory", signal)
	default:
		failed(f, exit.Code, signal, last, folder)
	}
	f.Message = fmt.Sprintf("rank %d %s", rank, f.Message)
	if line := lastLine(last); line != "" {
		f.Message += ": " + line
	}
	return f
}

// failed by itself: what it wrote last says why.
func failed(f *protocol.Fault, code int, signal syscall.Signal, last, folder string) {
	class, full := watch.Ended(last)
	f.Class, f.Secondary = class, class == crew.ClassInfrastructure && !full && signal == 0
	f.Message = fmt.Sprintf("ended with exit code %d", code)
	if signal != 0 {
		f.Message = fmt.Sprintf("was ended by the signal %q", signal)
	}
	if full {
		f.Message += ", and a disk is full"
		if folder != "" {
			f.Message += ": make room in the folder of checkpoints " + folder
		}
	}
}

func limit(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(" (limit %d MiB)", bytes>>20)
}

func lastLine(text string) string {
	line := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	if len(line) > 300 {
		line = strings.ToValidUTF8(line[:300], "") + "…"
	}
	return line
}
