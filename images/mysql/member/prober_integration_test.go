// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/test/onewriter"
)

// probeEvery is how often each member is asked for a write.
const probeEvery = 100 * time.Millisecond

// A prober asks every member itself, whatever label it has, whether it takes a write, and waits for no earlier answer.
type prober struct {
	c    *cluster
	stop context.CancelFunc
	all  sync.WaitGroup

	mu     sync.Mutex
	next   int
	writes []onewriter.Write
	rows   map[int]bool
}

// probe all members until check is called.
func (c *cluster) askAll() *prober {
	ctx, stop := context.WithCancel(context.Background())
	p := &prober{c: c, stop: stop, rows: map[int]bool{}}
	for _, l := range c.letters {
		conn := c.connect(l, consumer, "shop")
		conn.SetMaxOpenConns(40)
		p.all.Go(func() { p.run(ctx, l, conn) })
	}
	return p
}

func (p *prober) run(ctx context.Context, letter string, conn *sql.DB) {
	ticks := time.NewTicker(probeEvery)
	defer ticks.Stop()
	var asked sync.WaitGroup
	for ctx.Err() == nil {
		asked.Go(func() { p.ask(letter, conn) })
		select {
		case <-ctx.Done():
		case <-ticks.C:
		}
	}
	asked.Wait()
	_ = conn.Close()
}

func (p *prober) ask(letter string, conn *sql.DB) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p.mu.Lock()
	p.next++
	id := p.next
	p.mu.Unlock()
	from := time.Now()
	if _, err := conn.ExecContext(ctx, "INSERT INTO probes (id) VALUES (?)", id); err != nil {
		return
	}
	to := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows[id] = true
	p.writes = append(p.writes, onewriter.Write{Member: letter, From: from, To: to})
}

// check that no two members took writes at one time, and that none took a write that its group does not have.
func (p *prober) check(t *testing.T) {
	t.Helper()
	p.stop()
	p.all.Wait()
	for _, proof := range onewriter.Divided(p.writes) {
		t.Errorf("two members took writes at one time: %s", proof)
	}
	conn := p.c.connect(p.c.leader(), consumer, "shop")
	defer func() { _ = conn.Close() }()
	rows, err := conn.QueryContext(t.Context(), "SELECT id FROM probes")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		delete(p.rows, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(p.rows) > 0 {
		t.Errorf("%d of %d writes that a member acknowledged are not in the group", len(p.rows), len(p.writes))
	}
	by := map[string]int{}
	for _, w := range p.writes {
		by[w.Member]++
	}
	t.Logf("members took %v writes of %d requests", by, p.next)
}
