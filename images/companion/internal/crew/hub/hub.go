// SPDX-License-Identifier: Apache-2.0

// Package hub is what the coordinator's machine needs around it: connections with the members, the folder of checkpoints, and the time.
package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/checkpoints"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/coordinator"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

// Times of the hub.
const (
	tickEvery = 200 * time.Millisecond
	readTime  = 2 * protocol.Lost
	writeTime = 5 * time.Second
	// farewell is how long members have to hear how the run ended.
	farewell = 5 * time.Second
	// tidyTime is how long the end of a run waits until old checkpoints are removed.
	tidyTime = 30 * time.Second
	// queue is how many messages wait for a member that reads slowly, before it counts as lost.
	queue = 64
)

// A Hub runs a coordinator.
type Hub struct {
	plan     crew.Plan
	log      *slog.Logger
	listener net.Listener
	shelf    *shelf
	events   chan coordinator.Event
	done     chan struct{}

	mu      sync.Mutex
	machine *coordinator.Machine
	conns   map[coordinator.Conn]*conn
	last    coordinator.Conn
	fault   *crew.Fault // that was logged last
	code    int
	ended   bool
}

type conn struct {
	net.Conn

	out chan protocol.Message
}

// Listen for members at an address, and coordinate them until Close.
func Listen(ctx context.Context, plan crew.Plan, address string, log *slog.Logger) (*Hub, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the crew: %w", err)
	}
	h := &Hub{
		plan: plan, log: log, listener: listener, events: make(chan coordinator.Event, 16), done: make(chan struct{}),
		machine: coordinator.New(plan, time.Now()), conns: map[coordinator.Conn]*conn{},
	}
	if plan.Checkpoints != nil {
		folder := checkpoints.Of(plan)
		h.shelf = newShelf(folder, h.pass)
		go h.tidy(folder)
	}
	go h.accept()
	go h.loop()
	return h, nil
}

// tidy the volume beside everything else, because it may take long.
func (h *Hub) tidy(folder checkpoints.Folder) {
	if err := folder.Tidy(); err != nil {
		h.log.Warn("cannot tidy the volume of checkpoints", "error", err)
	}
}

// pass an event to the loop.
func (h *Hub) pass(e coordinator.Event) {
	select {
	case h.events <- e:
	case <-h.done:
	}
}

func (h *Hub) loop() {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		var e coordinator.Event = coordinator.Tick{}
		select {
		case e = <-h.events:
		case <-tick.C:
		case <-h.done:
			return
		}
		h.handle(e)
	}
}

func (h *Hub) handle(e coordinator.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, action := range h.machine.Handle(time.Now(), e) {
		switch a := action.(type) {
		case coordinator.Send:
			h.note(a.Message)
			if c := h.conns[a.Conn]; c != nil {
				select {
				case c.out <- a.Message:
				default: // It does not read.
					_ = c.Close()
				}
			}
		case coordinator.Close:
			if c := h.conns[a.Conn]; c != nil {
				h.drop(a.Conn, c)
			}
		case coordinator.Find:
			h.find(a.Reported)
		case coordinator.Record:
			h.shelf.record(a.Record)
		case coordinator.Remove:
			h.log.Info("remove old checkpoints", "names", a.Names)
			h.shelf.remove(a.Names, a.Kept)
		case coordinator.End:
			h.code, h.ended = a.Code, true
			h.log.Info("the run ended", "code", a.Code)
		}
	}
	if r, ok := e.(coordinator.Removed); ok && r.Err != nil {
		h.log.Warn("old checkpoints stay", "error", r.Err)
	}
	if f := h.machine.LastFault(); f != nil && f != h.fault {
		h.fault = f
		h.log.Warn("attempt ended", "attempt", f.Attempt, "class", f.Class, "pod", f.Index, "rank", f.Rank, "message", f.Message)
	}
}

// note in the log what changes the run.
func (h *Hub) note(m protocol.Message) {
	switch m.Kind {
	case protocol.Start:
		h.log.Info("start", "attempt", m.Attempt, "pod", m.Index, "groupRank", m.Orders.GroupRank)
	case protocol.Stop:
		h.log.Info("stop", "attempt", m.Attempt, "pod", m.Index, "how", m.Halt.How)
	default:
	}
}

func (h *Hub) find(reported []crew.Checkpoint) {
	if h.shelf == nil {
		go h.pass(coordinator.Found{})
		return
	}
	h.shelf.find(reported)
}

// drop a connection, once what was said to it is written.
func (h *Hub) drop(number coordinator.Conn, c *conn) {
	delete(h.conns, number)
	close(c.out)
}

// accept members. Others are closed by the machine, and too many of them at once.
func (h *Hub) accept() {
	for {
		nc, err := h.listener.Accept()
		if err != nil {
			select {
			case <-h.done:
				return
			case <-time.After(100 * time.Millisecond): // For instance too many open files.
				continue
			}
		}
		h.mu.Lock()
		if len(h.conns) >= 4*h.plan.Size()+16 {
			h.mu.Unlock()
			_ = nc.Close()
			continue
		}
		h.last++
		number, c := h.last, &conn{Conn: nc, out: make(chan protocol.Message, queue)}
		h.conns[number] = c
		h.mu.Unlock()
		go c.write()
		go h.read(number, c)
	}
}

func (c *conn) write() {
	defer func() { _ = c.Close() }()
	for m := range c.out {
		if c.SetWriteDeadline(time.Now().Add(writeTime)) != nil || protocol.Write(c, m) != nil {
			_ = c.Close() // The reader says so.
		}
	}
}

func (h *Hub) read(number coordinator.Conn, c *conn) {
	reader := protocol.NewReader(c)
	broken := true
	for c.SetReadDeadline(time.Now().Add(readTime)) == nil {
		m, err := reader.Read()
		if err != nil {
			broken = !errors.Is(err, io.EOF)
			break
		}
		h.pass(coordinator.Received{Conn: number, Message: m})
	}
	h.pass(coordinator.Closed{Conn: number, Broken: broken})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conns[number] == c {
		h.drop(number, c)
	}
}

// A Snapshot of the run.
type Snapshot struct {
	State    crew.State
	Restarts map[crew.Class]int
}

// Snapshot of the run as it is.
func (h *Hub) Snapshot() Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Snapshot{State: h.machine.State(time.Now()), Restarts: h.machine.Restarts()}
}

// Ended returns the exit code of the run, and whether it has ended.
func (h *Hub) Ended() (int, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.code, h.ended
}

// Close the hub: when the run has ended, once members know; else once no member is about to stop its ranks, but not later than a limit.
func (h *Hub) Close(limit time.Duration) {
	begun := time.Now()
	if _, ended := h.Ended(); ended {
		limit = farewell
	}
	for h.busy(limit-time.Since(begun), tidyTime-time.Since(begun)) {
		time.Sleep(10 * time.Millisecond)
	}
	close(h.done)
	_ = h.listener.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for number, c := range h.conns {
		h.drop(number, c)
	}
	if h.shelf != nil {
		h.shelf.close()
	}
}

// busy with members or with old checkpoints, while there is time left for either.
func (h *Hub) busy(left, tidy time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return left > 0 && len(h.conns) > 0 || tidy > 0 && h.machine.Tidying()
	}
	return left > 0 && h.machine.Stopping()
}
