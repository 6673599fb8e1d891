// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"
)

// patience of a client with one connection or statement.
const patience = 4 * time.Second

// A writer inserts rows through the member that has the label of the leader, as a client of the Service does, and keeps a ledger of those
// that were acknowledged.
type writer struct {
	c    *cluster
	stop context.CancelFunc
	all  sync.WaitGroup

	mu    sync.Mutex
	next  int
	acked []int
	gap   time.Duration
	errs  map[string]int
}

// write until the test ends or stop is called.
func (c *cluster) write() *writer {
	ctx, stop := context.WithCancel(c.t.Context())
	w := &writer{c: c, stop: stop}
	w.all.Go(func() { w.run(ctx) })
	return w
}

func (w *writer) run(ctx context.Context) {
	var conn *sql.DB
	var to string
	var last time.Time
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	for ctx.Err() == nil {
		err := func() error {
			leader := w.c.leader()
			if leader == "" {
				return errors.New("no pod has the label of the leader")
			}
			if conn == nil || leader != to {
				if conn != nil {
					_ = conn.Close()
				}
				conn, to = w.c.connect(leader, consumer, "shop"), leader
			}
			one, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			w.mu.Lock()
			w.next++
			id := w.next
			w.mu.Unlock()
			if _, err := conn.ExecContext(one, "INSERT INTO ledger (id) VALUES (?)", id); err != nil {
				return err
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if !last.IsZero() {
				w.gap = max(w.gap, time.Since(last))
			}
			last = time.Now()
			w.acked = append(w.acked, id)
			return nil
		}()
		if err != nil && ctx.Err() == nil {
			if conn != nil {
				_ = conn.Close()
				conn = nil
			}
			w.mu.Lock()
			if w.errs == nil {
				w.errs = map[string]int{}
			}
			text := err.Error()
			w.errs[text[:min(len(text), 200)]]++
			w.mu.Unlock()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// count acknowledged rows.
func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// reset the longest gap, and return it with the failures.
func (w *writer) reset() (time.Duration, map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	gap, errs := w.gap, maps.Clone(w.errs)
	w.gap, w.errs = 0, nil
	return gap.Round(time.Millisecond), errs
}

// goesOn waits until rows are acknowledged again.
func (w *writer) goesOn(within time.Duration) {
	w.c.t.Helper()
	n := w.count()
	w.c.eventually("writes go on", within, func() bool { return w.count() > n+5 })
}

// check that every acknowledged row is there, on every member.
func (w *writer) check(t *testing.T) {
	t.Helper()
	w.stop()
	w.all.Wait()
	for _, l := range w.c.letters {
		lost := w.lost(t, l)
		// A follower executes a moment later.
		for until := time.Now().Add(10 * time.Second); lost > 0 && time.Now().Before(until); lost = w.lost(t, l) {
			time.Sleep(100 * time.Millisecond)
		}
		if lost != 0 {
			t.Errorf("%d of %d acknowledged rows are lost on %s", lost, len(w.acked), l)
		}
	}
	t.Logf("%d acknowledged rows", len(w.acked))
}

func (w *writer) lost(t *testing.T, letter string) int {
	t.Helper()
	conn := w.c.connect(letter, consumer, "shop")
	defer func() { _ = conn.Close() }()
	rows, err := conn.QueryContext(t.Context(), "SELECT id FROM ledger")
	if err != nil {
		t.Log(err)
		return len(w.acked)
	}
	defer func() { _ = rows.Close() }()
	there := map[int]bool{}
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		there[id] = true
	}
	lost := 0
	for _, id := range w.acked {
		if !there[id] {
			lost++
		}
	}
	return lost
}
