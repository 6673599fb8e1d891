// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the kernel's unit of processor time, which is the same on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// A process at one moment.
type process struct {
	pid int
	// cpu is all the time that it has used of a processor.
	cpu time.Duration
	// resident is its memory now, peak the most it has had since the last look.
	resident, peak int64
}

// look at a process, and begin its peak again.
func look(pid int) (process, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, fmt.Errorf("cannot see process %d: %w", pid, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return process{}, fmt.Errorf("cannot see process %d: %w", pid, err)
	}
	p, err := parseProcess(stat, status)
	if err != nil {
		return process{}, fmt.Errorf("cannot read process %d: %w", pid, err)
	}
	p.pid = pid
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return process{}, fmt.Errorf("cannot begin the peak of process %d again: %w", pid, err)
	}
	return p, nil
}

func parseProcess(stat, status []byte) (process, error) {
	// The name may contain anything, but nothing after its end has a parenthesis.
	_, rest, found := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
	fields := bytes.Fields(rest)
	if !found || len(fields) < 13 {
		return process{}, errors.New("its statistics are not what the kernel writes")
	}
	var p process
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return process{}, fmt.Errorf("cannot read its time: %w", err)
		}
		p.cpu += time.Duration(n) * tick
	}
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		into := map[string]*int64{"VmRSS": &p.resident, "VmHWM": &p.peak}[string(name)]
		if into == nil {
			continue
		}
		n, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))), 10, 64)
		if err != nil {
			return process{}, fmt.Errorf("cannot read its memory: %w", err)
		}
		*into = n << 10
	}
	return p, nil
}

// A Usage of one component during a phase.
type Usage struct {
	// CPU is processor seconds.
	CPU float64 `json:"cpuSeconds"`
	// Peak is the most memory it had, Resident what it had at the end; both in MiB.
	Peak     float64 `json:"peakMiB"`
	Resident float64 `json:"residentMiB"`
	// Starts is how often it was started again.
	Starts int `json:"starts,omitempty"`
	// Queue is the most that waited in any of its work queues, and Left what waited at the end.
	Queue int `json:"queue,omitempty"`
	Left  int `json:"queueLeft,omitempty"`
}

// queue of the component as a cell of the table.
func (u Usage) queue() string { return fmt.Sprintf("%d → %d", u.Queue, u.Left) }

// A meter adds up what a component uses, by looking at it again and again.
type meter struct {
	last process
	sum  Usage
}

const mebibyte = 1 << 20

func (m *meter) add(p process) {
	if p.pid != m.last.pid && m.last.pid != 0 {
		m.sum.Starts++
		m.last = process{}
	}
	if m.last.pid != 0 || m.sum.Starts > 0 {
		m.sum.CPU += (p.cpu - m.last.cpu).Seconds()
	}
	m.sum.Peak = max(m.sum.Peak, float64(p.peak)/mebibyte)
	m.sum.Resident = float64(p.resident) / mebibyte
	m.last = p
}

// take what was used since the last time.
func (m *meter) take() Usage {
	u := m.sum
	m.sum = Usage{}
	return u
}
