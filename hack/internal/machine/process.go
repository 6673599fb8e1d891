// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Process identifies one process for ever: the kernel reuses a pid, but not with the same start time in the same boot.
type Process struct {
	PID int `json:"pid"`
	// Start in clock ticks since the boot.
	Start uint64 `json:"start"`
	// Boot is the identity of the boot.
	Boot string `json:"boot"`
	// Net is the identity of its network namespace when it started. Unlike the rest it may be reused.
	Net string `json:"net"`
}

// identify returns the Process that has a pid now.
func identify(pid int) (Process, error) {
	stat, err := readStat(pid)
	if err != nil {
		return Process{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Process{}, fmt.Errorf("cannot identify this boot: %w", err)
	}
	p := Process{PID: pid, Start: stat.start, Boot: strings.TrimSpace(string(boot))}
	// A process that is on its way out has none any more.
	if p.Net, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Process{}, fmt.Errorf("cannot look at process %d: %w", pid, err)
	}
	return p, nil
}

// Alive reports whether the very process still runs. A zombie does not: its namespaces are gone already.
func (p Process) Alive() bool {
	now, err := identify(p.PID)
	if err != nil || now.Start != p.Start || now.Boot != p.Boot {
		return false
	}
	stat, err := readStat(p.PID)
	return err == nil && stat.state != 'Z' && stat.state != 'X'
}

// Signal sends a signal to the very process, if it is still there.
func (p Process) Signal(sig syscall.Signal) error {
	if !p.Alive() {
		return nil
	}
	if err := syscall.Kill(p.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot signal process %d: %w", p.PID, err)
	}
	return nil
}

// wait returns whether the process ended in time.
func (p Process) wait(timeout time.Duration) bool {
	for end := time.Now().Add(timeout); p.Alive(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func (p Process) write(dir string) error {
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("cannot encode a process: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "process.json"), data, 0o600); err != nil {
		return fmt.Errorf("cannot record a process: %w", err)
	}
	return nil
}

// Find returns the first process of the machine whose data lies in dir, as it was recorded, and whether the machine runs.
// One that is being killed does not, though its process may take a while to bury the others.
func Find(dir string) (Process, bool) {
	p := recorded(dir)
	if !p.Alive() {
		return p, false
	}
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.PID))
	return p, err == nil
}

// recorded returns the process that was recorded in dir, or one that is not alive.
func recorded(dir string) Process {
	var p Process
	data, err := os.ReadFile(filepath.Join(dir, "process.json"))
	if err != nil || json.Unmarshal(data, &p) != nil {
		return Process{}
	}
	return p
}

type stat struct {
	state  byte
	parent int
	start  uint64
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, fmt.Errorf("cannot look at process %d: %w", pid, err)
	}
	return parseStat(data)
}

// parseStat reads a line of /proc/PID/stat. The second field is the command in parentheses and may hold anything, even
// parentheses and spaces, so counting starts behind the last one.
func parseStat(line []byte) (stat, error) {
	i := bytes.LastIndexByte(line, ')')
	if i < 0 {
		return stat{}, fmt.Errorf("cannot parse process status %q", line)
	}
	fields := strings.Fields(string(line[i+1:]))
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("cannot parse process status %q", line)
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return stat{}, fmt.Errorf("cannot parse the parent in %q: %w", line, err)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("cannot parse the start time in %q: %w", line, err)
	}
	return stat{state: fields[0][0], parent: parent, start: start}, nil
}

// pids returns the processes that this proc file system shows.
func pids() ([]int, error) {
	entries, err := fs.ReadDir(os.DirFS("/proc"), ".")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	var all []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all, nil
}
