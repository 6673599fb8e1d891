// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A writer inserts rows through the member that has the label of the leader, as a client of the Service does, and keeps a ledger of
// those that were acknowledged.
type writer struct {
	c    *cluster
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	next   int
	acked  []int
	last   time.Time
	gap    time.Duration
	failed int
	errs   map[string]int
	conns  int
}

// patience of a client with one connection or statement. Disks of machines that test many things at a time take a second at times.
const patience = 4 * time.Second

// write until the test ends or stop is called.
func (c *cluster) write() *writer {
	ctx, stop := context.WithCancel(c.t.Context())
	w := &writer{c: c, stop: stop, done: make(chan struct{}), errs: map[string]int{}}
	go w.run(ctx)
	return w
}

func (w *writer) run(ctx context.Context) {
	defer close(w.done)
	var conn *pgx.Conn
	var to string
	drop := func() {
		if conn != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			_ = conn.Close(ctx)
			conn = nil
		}
	}
	defer drop()
	for ctx.Err() == nil {
		err := func() error {
			one, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			leader := w.c.leader()
			if conn != nil && leader != to && leader != "" {
				drop() // a proxy would keep it, and the server end it
			}
			if conn == nil {
				if leader == "" {
					return errors.New("no pod has the label of the leader")
				}
				c, err := w.c.connect(one, leader, "shop")
				if err != nil {
					return err
				}
				conn, to = c, leader
				w.mu.Lock()
				w.conns++
				w.mu.Unlock()
			}
			w.mu.Lock()
			w.next++
			id := w.next
			w.mu.Unlock()
			if _, err := conn.Exec(one, "insert into public.ledger (id) values ($1)", id); err != nil {
				return err
			}
			w.ack(id)
			return nil
		}()
		if err != nil && ctx.Err() == nil {
			drop()
			w.mu.Lock()
			w.failed++
			text := err.Error()
			w.errs[text[:min(len(text), 160)]]++
			w.mu.Unlock()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *writer) ack(id int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if !w.last.IsZero() {
		w.gap = max(w.gap, now.Sub(w.last))
	}
	w.last = now
	w.acked = append(w.acked, id)
}

// reset the longest gap and the failures, and return them.
func (w *writer) reset() (time.Duration, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	gap, failed := w.gap, w.failed
	w.gap, w.failed, w.errs = 0, 0, map[string]int{}
	return gap.Round(time.Millisecond), failed
}

// count acknowledged rows.
func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// goesOn waits until rows are acknowledged again.
func (w *writer) goesOn(within time.Duration) {
	w.c.t.Helper()
	n := w.count()
	w.c.eventually("writes go on", within, func() bool { return w.count() > n+5 })
}

// check that every acknowledged row is there.
func (w *writer) check(t *testing.T) {
	t.Helper()
	w.stop()
	<-w.done
	conn, err := w.c.connect(t.Context(), w.c.leader(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(t.Context(), "select id from public.ledger")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	there := map[int]bool{}
	for _, id := range ids {
		there[id] = true
	}
	lost := 0
	for _, id := range w.acked {
		if !there[id] {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged rows are lost", lost, len(w.acked))
	}
	t.Logf("%d acknowledged rows, none lost, %d connections", len(w.acked), w.conns)
}
