// SPDX-License-Identifier: Apache-2.0

// Package process starts and ends processes as the first one of a container has to: it also buries processes whose parents are
// gone, such as the postmaster.
package process

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// awaited are the children that this program started and waits for. There is one list for the whole program, because Reap sees
// all of its children. If Reap buried an awaited child, the goroutine that waits for it would never know how it ended.
var awaited = struct {
	sync.Mutex

	pids map[int]bool
}{pids: map[int]bool{}}

// Adopt makes this process the parent of descendants that lose theirs, even when it is not the first process of its namespace.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become the parent of orphans: %w", err)
	}
	return nil
}

// Reap orphans that end until the context does, and call ended with each one's number. Children that this program started with
// Start, Begin, Run or Do are left to the goroutines that wait for them.
func Reap(ctx context.Context, ended func(pid int)) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	defer signal.Stop(signals)
	// Several ends may be one signal.
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		for _, p := range Children(os.Getpid()) {
			if p.Dead && bury(p.PID) {
				ended(p.PID)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-signals:
		case <-tick.C:
		}
	}
}

// bury an orphan that has ended, and report whether it was one.
func bury(pid int) bool {
	awaited.Lock() // None with this number is started meanwhile.
	defer awaited.Unlock()
	if awaited.pids[pid] {
		return false
	}
	buried, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return err == nil && buried == pid
}

// A Process that runs or has ended.
type Process struct {
	PID, Parent int
	Name        string
	// Dead reports whether it has ended and its parent has not waited for it, Stopped whether a signal or a debugger holds it.
	Dead, Stopped bool
}

// Get a process.
func Get(pid int) (Process, bool) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Process{}, false
	}
	return read(p)
}

// read a process, if it is still there.
func read(p procfs.Proc) (Process, bool) {
	s, err := p.Stat()
	dead := s.State == "Z" || s.State == "X"
	return Process{PID: p.PID, Parent: s.PPID, Name: s.Comm, Dead: dead, Stopped: s.State == "T" || s.State == "t"}, err == nil
}

// Title of a process: what it was started with, or says of itself instead. It is empty when there is no such process.
func Title(pid int) string {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return ""
	}
	words, _ := p.CmdLine()
	return strings.TrimSpace(strings.Join(words, " "))
}

// Children of a process.
func Children(parent int) []Process {
	var out []Process
	for _, p := range all() {
		if p.Parent == parent {
			out = append(out, p)
		}
	}
	return out
}

// Descendants of a process, without those below one of the given numbers, and without these.
func Descendants(parent int, without ...int) []Process {
	skip := map[int]bool{}
	for _, pid := range without {
		skip[pid] = true
	}
	below := map[int][]Process{}
	for _, p := range all() {
		below[p.Parent] = append(below[p.Parent], p)
	}
	var out []Process
	for next := []int{parent}; len(next) > 0; next = next[1:] {
		for _, p := range below[next[0]] {
			if !skip[p.PID] {
				out, next = append(out, p), append(next, p.PID)
			}
		}
	}
	return out
}

// all processes of the namespace.
func all() []Process {
	procs, _ := procfs.AllProcs()
	out := make([]Process, 0, len(procs))
	for _, p := range procs {
		if p, ok := read(p); ok {
			out = append(out, p)
		}
	}
	return out
}

// Gone waits until a process is gone or the context ends, and reports whether the process is gone. A dead process is there until
// its parent has buried it.
func Gone(ctx context.Context, pid int) bool {
	for ctx.Err() == nil {
		if _, there := Get(pid); !there {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}
