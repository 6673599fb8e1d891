// SPDX-License-Identifier: Apache-2.0

// Package process starts and ends processes as the first process of a container has to: it also ends and buries processes whose parents are
// gone. It makes clean lines of what they write, and knows why they end.
package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Keeper is the parent of all processes of the pod. A program has one, because it waits for every child.
type Keeper struct {
	forks chan func()

	mu      sync.Mutex
	awaited map[int]chan<- syscall.WaitStatus
	buried  int
}

// NewKeeper makes this process the parent of all its descendants that lose theirs, and waits for the end of each. Nothing else in this
// program may start processes.
func NewKeeper() (*Keeper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("cannot become the parent of orphans: %w", err)
	}
	k := &Keeper{forks: make(chan func()), awaited: map[int]chan<- syscall.WaitStatus{}}
	go k.fork()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	go k.reap(signals)
	return k, nil
}

// fork on one thread of the system, which lives as long as the program: children are to die with it, and the kernel counts the end of
// the thread that forked as the end of the parent.
func (k *Keeper) fork() {
	runtime.LockOSThread()
	for start := range k.forks {
		start()
	}
}

// Start a command. The channel gets its status when it ends.
func (k *Keeper) Start(cmd *exec.Cmd) (<-chan syscall.WaitStatus, error) {
	ended := make(chan syscall.WaitStatus, 1)
	failed := make(chan error, 1)
	k.forks <- func() {
		// The lock is held until the child is known, so that one that ends at once is not taken for an orphan.
		k.mu.Lock()
		defer k.mu.Unlock()
		err := cmd.Start()
		if err == nil {
			k.awaited[cmd.Process.Pid] = ended
		}
		failed <- err
	}
	return ended, <-failed
}

// reap children that end, those that were started and those that were inherited.
func (k *Keeper) reap(signals <-chan os.Signal) {
	tick := time.NewTicker(time.Second) // Several ends may be one signal.
	defer tick.Stop()
	for {
		for k.bury() {
		}
		select {
		case <-signals:
		case <-tick.C:
		}
	}
}

// bury one child that has ended, if there is one.
func (k *Keeper) bury() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if err == syscall.EINTR {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	k.buried++
	if ended, ok := k.awaited[pid]; ok {
		delete(k.awaited, pid)
		ended <- status
	}
	return true
}

// Sweep kills every process below this one, but those to keep, and reports whether none was left. When a process ends, its children become children of this
// process, so that repeated sweeps reach all of them. One that has ended counts until it is buried, and a burial meanwhile counts, too:
// its children may have come to a list that was read before.
func (k *Keeper) Sweep(keep ...int) bool {
	before := k.burials()
	left := slices.DeleteFunc(children(), func(pid int) bool { return slices.Contains(keep, pid) })
	for _, pid := range left {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return len(left) == 0 && k.burials() == before
}

func (k *Keeper) burials() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.buried
}

// children of this process that are not buried.
func children() []int {
	var all []int
	for _, pid := range candidates() {
		raw, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil {
			continue // It has ended since.
		}
		// The name in parentheses may have spaces and parentheses of its own.
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		if number, err := strconv.Atoi(pid); err == nil {
			all = append(all, number)
		}
	}
	return all
}

// candidates are processes that may be children: by the kernel's lists, or all that there are where the kernel keeps no lists.
func candidates() []string {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err == nil && len(lists) > 0 {
		var all []string
		for _, list := range lists {
			raw, err := os.ReadFile(filepath.Clean(list))
			if err == nil { // Else the thread has ended since.
				all = append(all, strings.Fields(string(raw))...)
			}
		}
		return all
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, e.Name())
		}
	}
	return all
}
