// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/capstan-dev/capstan/apis/crew"
)

// MemoryNow is what is known of the container's memory when a process ended.
type MemoryNow struct {
	// Killed reports whether the kernel has killed a process for lack of memory since it began, and Known whether the control group counts
	// that. What is not known was not Killed.
	Killed, Known bool
	// Limit in bytes, 0 for none.
	Limit int64
}

// Since is what is known of the memory since there were so many kills.
func (m Memory) Since(kills int) MemoryNow {
	now := MemoryNow{Limit: m.Limit()}
	var count int
	count, now.Known = m.Kills()
	now.Killed = now.Known && count > kills
	return now
}

// An Ending is why a process ended without success.
type Ending struct {
	Class crew.Class
	// Message continues the name of the process: "ended with exit code 1".
	Message string
	// Secondary reports whether its words are about the network: that may only follow from the end of another process.
	Secondary bool
	// Full reports whether its words say that a disk is full.
	Full bool
}

// Explain the end of a process by its exit and its last lines. Nil: it ended well. A shell reports a signal n that ended its program as the
// exit code 128 + n. SIGKILL is for want of memory only where the kernel counts that: others use the signal, too.
func Explain(exit Exit, last string, mem MemoryNow) *Ending {
	e := &Ending{Class: crew.ClassInfrastructure}
	signal := exit.Signal
	if exit.Code > 128 && exit.Code < 128+32 {
		signal = syscall.Signal(exit.Code - 128)
	}
	switch {
	case exit.Err != nil:
		e.Class, e.Message = crew.ClassUser, exit.Err.Error()
		return e
	case signal == 0 && exit.Code == 0:
		return nil
	case signal == syscall.SIGKILL && mem.Killed:
		e.Class = crew.ClassOutOfMemory
		e.Message = "was killed, because the memory of its container was not enough" + limitNote(mem.Limit)
	case signal == syscall.SIGKILL && !mem.Known:
		e.Message = "was killed, and the kernel does not say whether the memory of its container was not enough" + limitNote(mem.Limit) + ": if it was, raise resources.memory"
	case signal == syscall.SIGKILL || signal == syscall.SIGTERM || signal == syscall.SIGHUP || signal == syscall.SIGINT:
		e.Message = fmt.Sprintf("was ended by the signal %q from elsewhere", signal)
	case signal == syscall.SIGBUS:
		e.Message = fmt.Sprintf("was ended by the signal %q, which most often means that /dev/shm is full: raise resources.sharedMemory", signal)
	default:
		e.explainFailure(exit.Code, signal, last)
	}
	return e
}

// explainFailure of a process that failed by itself: what it wrote last says why.
func (e *Ending) explainFailure(code int, signal syscall.Signal, last string) {
	e.Class, e.Full = classify(last)
	e.Secondary = e.Class == crew.ClassInfrastructure && !e.Full && signal == 0
	e.Message = fmt.Sprintf("ended with exit code %d", code)
	if signal != 0 {
		e.Message = fmt.Sprintf("was ended by the signal %q", signal)
	}
	if e.Full {
		e.Message += ", and a disk is full"
	}
}

// infrastructure are words by which a program that failed itself names device or network.
var infrastructure = regexp.MustCompile(`(?i)\bnccl\b|\bgloo\b|cuda error|cuda_error|cudnn|\bxid\b|uncorrectable ecc|\brccl\b|hip error|connection (?:reset|refused|closed|aborted|timed out)|connection was|broken pipe|no route to host|network is unreachable|i/o timeout|host unreachable|stale file handle|input/output error|reset by peer|\beof\b`)

// diskFull are words by which a program says that a disk is full.
var diskFull = regexp.MustCompile(`(?i)no space left on device|disk quota exceeded|file too large`)

// classify a program that failed by its exit code: its class by its last lines, and whether they say that a disk is full.
func classify(last string) (class crew.Class, full bool) {
	full = diskFull.MatchString(last)
	for line := range strings.Lines(last) {
		if full || infrastructure.MatchString(strings.TrimSpace(line)) {
			return crew.ClassInfrastructure, full
		}
	}
	return crew.ClassUser, false
}

func limitNote(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(" (limit %d MiB)", bytes>>20)
}

// LastLine of several, shortened.
func LastLine(text string) string {
	line := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	if len(line) > 300 {
		line = strings.ToValidUTF8(line[:300], "") + "…"
	}
	return line
}
