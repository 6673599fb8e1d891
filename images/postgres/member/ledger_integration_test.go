// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A ledger has the numbers of the rows that clients were told are there, the longest time between two of them, and what failed.
type ledger struct {
	c    *cluster
	stop context.CancelFunc
	all  sync.WaitGroup

	mu     sync.Mutex
	next   int
	acked  []int
	gap    time.Duration
	failed int
	errs   map[string]int
	conns  int
}

// number of the next row.
func (l *ledger) number() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	return l.next
}

func (l *ledger) connected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns++
}

// ack a row, and return when; since is when the one before it was, if there is one.
func (l *ledger) ack(id int, since time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !since.IsZero() {
		l.gap = max(l.gap, now.Sub(since))
	}
	l.acked = append(l.acked, id)
	return now
}

func (l *ledger) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed++
	if l.errs == nil {
		l.errs = map[string]int{}
	}
	text := err.Error()
	l.errs[text[:min(len(text), 200)]]++
}

// reset the longest gap and the failures, and return them.
func (l *ledger) reset() (time.Duration, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gap, failed := l.gap, l.failed
	l.gap, l.failed, l.errs = 0, 0, nil
	return gap.Round(time.Millisecond), failed
}

// failures by their texts.
func (l *ledger) failures() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.errs)
}

// count acknowledged rows.
func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// goesOn waits until rows are acknowledged again.
func (l *ledger) goesOn(within time.Duration) {
	l.c.t.Helper()
	n := l.count()
	l.c.eventually("writes go on", within, func() bool { return l.count() > n+5 })
}

// check that every acknowledged row is there.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	l.checkFrom(t, 0)
}

// checkFrom some row on that every acknowledged row is there: a restore takes away what was acknowledged before it.
func (l *ledger) checkFrom(t *testing.T, first int) {
	t.Helper()
	l.stop()
	l.all.Wait()
	conn, err := l.c.connect(t.Context(), l.c.leader(), "shop")
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
	acked := l.acked[first:]
	for _, id := range acked {
		if !there[id] {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged rows are lost", lost, len(acked))
	}
	t.Logf("%d acknowledged rows, %d lost, %d connections", len(acked), lost, l.conns)
}
