// SPDX-License-Identifier: Apache-2.0

//go:build comparison && linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"sync"
	"time"
)

// An event of a rank. The time is when it arrives here, so that all times are of one clock.
type event struct {
	Rank  int    `json:"rank"`
	Event string `json:"event"`
	Step  int    `json:"step"`
}

// A process of a rank. Its connection ends with it.
type process struct {
	rank    int
	started time.Time
	ended   time.Time
}

// seen is what happened in a run.
type seen struct {
	processes []*process
	// furthest step before the fault.
	furthest int
	fault    time.Time
	// step is when the first step after the fault was done, and resumed the step before it.
	step    time.Time
	resumed int
}

type events struct {
	mu       sync.Mutex
	seen     seen
	changed  chan struct{}
	listener net.Listener
}

func listen(ctx context.Context, path string) (*events, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for events: %w", err)
	}
	e := &events{changed: make(chan struct{}, 1), listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go e.follow(conn)
		}
	}()
	return e, nil
}

// follow a process to its end.
func (e *events) follow(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	p := &process{started: time.Now()}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		now := time.Now()
		var got event
		if json.Unmarshal(lines.Bytes(), &got) != nil {
			continue
		}
		e.note(p, got, now)
	}
	e.mu.Lock()
	p.ended = time.Now()
	e.mu.Unlock()
	e.tell()
}

func (e *events) note(p *process, got event, now time.Time) {
	e.mu.Lock()
	s := &e.seen
	switch got.Event {
	case "start":
		p.rank = got.Rank
		s.processes = append(s.processes, p)
	case "fault":
		s.fault = now
	case "step":
		switch {
		case s.fault.IsZero():
			s.furthest = max(s.furthest, got.Step)
		case p.started.Before(s.fault): // Its last steps arrive.
			s.furthest = max(s.furthest, got.Step)
		case s.step.IsZero():
			s.step, s.resumed = now, got.Step-1
		}
	}
	e.mu.Unlock()
	e.tell()
}

// mark the moment of a fault from outside.
func (e *events) mark() {
	e.mu.Lock()
	e.seen.fault = time.Now()
	e.mu.Unlock()
}

func (e *events) tell() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// until something is seen, or the limit is over.
func (e *events) until(ctx context.Context, limit time.Duration, is func(*seen) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		e.mu.Lock()
		reached := is(&e.seen)
		e.mu.Unlock()
		if reached {
			return true
		}
		select {
		case <-e.changed:
		case <-time.After(50 * time.Millisecond): // For what is no event.
		case <-ctx.Done():
			return false
		}
	}
}

// fill a result with what was seen.
func (e *events) fill(r *result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.seen
	var stopped, started time.Time
	running := false
	for _, p := range s.processes {
		if p.started.Before(s.fault) {
			running = running || p.ended.IsZero()
			stopped = later(stopped, p.ended)
			continue
		}
		r.Starts++
		// Only those that did the step, and not earlier attempts in vain.
		if !s.step.IsZero() && p.started.Before(s.step) && (p.ended.IsZero() || p.ended.After(s.step)) {
			started = later(started, p.started)
		}
	}
	if running {
		stopped = time.Time{}
	}
	r.Stopped, r.Started, r.Step = since(s.fault, stopped), since(s.fault, started), since(s.fault, s.step)
	if !s.step.IsZero() {
		r.Twice = s.furthest - s.resumed
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func since(fault, at time.Time) float64 {
	if at.IsZero() {
		return -1
	}
	return math.Round(at.Sub(fault).Seconds()*1000) / 1000
}

func (e *events) close() { _ = e.listener.Close() }
