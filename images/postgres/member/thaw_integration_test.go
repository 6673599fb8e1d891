// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestThawedLeader: clients wait for a leader that is frozen, with commits under way. It thaws at the moment at which another member gets the lock,
// and what it acknowledges from then on must be there: no member that follows it may receive it beside the one that leads next.
func TestThawedLeader(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	for round := range rounds(3) {
		c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") && c.synchronous() })
		before := c.leader()
		ctx, cancel := context.WithCancel(t.Context())
		w := &patient{next: round * 1_000_000}
		for range 8 {
			conn, err := c.connect(ctx, before, "shop")
			if err != nil {
				t.Fatal(err)
			}
			w.all.Go(func() { w.run(ctx, conn) })
		}
		c.eventually("rows are written", 10*time.Second, func() bool { return w.count() > 100 })
		r := c.running(before)
		r.Signal(syscall.SIGSTOP, nil)
		holder := c.identify(before).Pod
		took := c.eventually("another member holds the lock", time.Minute, func() bool { h := c.holder(); return h != holder && h != "" })
		frozen := w.count()
		r.Signal(syscall.SIGCONT, nil)
		c.eventually("another member leads, and the old leader follows", time.Minute, func() bool {
			return c.leader() != "" && c.leader() != before && c.ready("a", "b", "c")
		})
		cancel()
		w.all.Wait()
		there := c.rows(c.leader())
		lost := 0
		for _, id := range w.acked {
			if !there[id] {
				lost++
			}
		}
		t.Logf("round %d: another held the lock after %s; %d rows, of which %d after the thaw", round, took, len(w.acked), len(w.acked)-frozen)
		if lost > 0 {
			t.Errorf("round %d: %d of them are lost", round, lost)
		}
	}
	c.oneLeader()
	c.onePromotion()
}

// TestLossAccepted: two of three members are lost, and the last one is not promoted, because they may have had commits that it has not. A person who accepts
// that removes what is recorded of synchronous replication.
func TestLossAccepted(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") && c.synchronous() })
	before := c.leader()
	last := c.standbyOf(before)
	for _, l := range []string{"a", "b", "c"} {
		if l != last {
			c.running(l).Kill()
		}
	}
	waits := time.Duration(2*c.server.Pace.TTL) * time.Second
	for until := time.Now().Add(waits); time.Now().Before(until); time.Sleep(time.Second) {
		if l := c.leader(); l == last {
			t.Fatalf("%s leads alone, without a decision; the lock has %q", last, c.holder())
		}
	}
	patch := []byte(`{"metadata": {"annotations": {"leader": null, "sync_standby": null, "quorum": null}}}`)
	if _, err := c.client.CoreV1().ConfigMaps(c.ns).Patch(t.Context(), scope+"-sync", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	took := c.eventually("the last member leads", time.Minute, func() bool { return c.leader() == last })
	t.Logf("it leads %s after the decision", took)
}

// patient clients write through the connections that they have, and wait for an answer for as long as it takes.
type patient struct {
	all   sync.WaitGroup
	mu    sync.Mutex
	next  int
	acked []int
}

func (p *patient) run(ctx context.Context, conn *pgx.Conn) {
	defer func() { _ = conn.Close(context.Background()) }()
	for {
		p.mu.Lock()
		p.next++
		id := p.next
		p.mu.Unlock()
		if _, err := conn.Exec(ctx, "insert into public.ledger (id) values ($1)", id); err != nil {
			return
		}
		p.mu.Lock()
		p.acked = append(p.acked, id)
		p.mu.Unlock()
	}
}

func (p *patient) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.acked)
}
