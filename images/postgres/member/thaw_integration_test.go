// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/images/member/process"
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
		w := c.patients(ctx, before, round*1_000_000)
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

// TestStandbyAhead: the former leader thaws and stops again. In between, the standby that does not have the lock acknowledges commits. The one
// that has it receives nothing meanwhile, and must not be promoted without them.
func TestStandbyAhead(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	patroni := func(p process.Process) bool { return p.Name == "patroni" }
	// A receiver ends while the leader is frozen, and this process starts another one.
	receiving := func(p process.Process) bool {
		title := process.Title(p.PID)
		return strings.Contains(title, ": walreceiver ") || strings.Contains(title, ": startup ")
	}
	tried := false
	// In some rounds both standbys receive the same before the one is held.
	for round, n := 0, rounds(3); round < n || !tried && round < n+5; round++ {
		c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") && c.synchronous() })
		before := c.leader()
		ctx, cancel := context.WithCancel(t.Context())
		w := c.patients(ctx, before, round*1_000_000)
		former, was := c.running(before), c.identify(before).Pod
		former.Signal(syscall.SIGSTOP, nil)
		next, other := "", ""
		for until := time.Now().Add(time.Minute); next == "" && time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
			if h := c.holder(); h != "" && h != was {
				for _, l := range []string{"a", "b", "c"} {
					if c.identify(l).Pod == h {
						next = l
					} else if l != before {
						other = l
					}
				}
			}
		}
		if next == "" {
			t.Fatal("no other member holds the lock")
		}
		// One that is about to start is held as well.
		hold, release := context.WithCancel(t.Context())
		held := make(chan struct{})
		go func() {
			defer close(held)
			for hold.Err() == nil {
				c.running(next).Signal(syscall.SIGSTOP, receiving)
				time.Sleep(time.Millisecond)
			}
		}()
		c.running(other).Signal(syscall.SIGSTOP, patroni)
		frozen := w.count()
		former.Signal(syscall.SIGCONT, nil)
		w.all.Wait() // The former leader stops, and ends their connections.
		after := w.count() - frozen
		c.eventually("the former leader runs as a standby", time.Minute, func() bool {
			conn, err := c.connect(t.Context(), before, "postgres")
			if err != nil {
				return false
			}
			defer func() { _ = conn.Close(context.Background()) }()
			follows := false
			return conn.QueryRow(t.Context(), "select pg_is_in_recovery()").Scan(&follows) == nil && follows
		})
		time.Sleep(time.Second) // A promotion that does not wait for more begins.
		ahead := c.received(other) > c.received(next)
		c.running(other).Signal(syscall.SIGCONT, patroni)
		if ahead {
			c.eventually("a member that has received more gets the lock", time.Minute, func() bool { h := c.holder(); return h != "" && h != c.identify(next).Pod })
			tried = true
		}
		release()
		<-held
		c.running(next).Signal(syscall.SIGCONT, receiving)
		// The former leader has all that it wrote, so it may lead again.
		c.eventually("one leads, and the others follow", 2*time.Minute, func() bool { return c.leader() != "" && c.ready("a", "b", "c") })
		cancel()
		there := c.rows(c.leader())
		lost := 0
		for _, id := range w.acked {
			if !there[id] {
				lost++
			}
		}
		t.Logf("round %d: %d rows were acknowledged after the thaw; %s had the lock, and %s leads", round, after, next, c.leader())
		if lost > 0 {
			t.Errorf("round %d: %d of %d acknowledged rows are lost", round, lost, len(w.acked))
		}
	}
	if !tried {
		t.Error("no standby received more than the one with the lock, so that nothing was tried")
	}
	c.onePromotion()
}

// received is how much of the log a standby has received.
func (c *cluster) received(letter string) int64 {
	c.t.Helper()
	at, err := strconv.ParseInt(c.query(letter, "select coalesce(pg_last_wal_receive_lsn() - '0/0'::pg_lsn, 0)::text"), 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return at
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

// patients of a member, eight of them, once they have written rows with numbers from the first on.
func (c *cluster) patients(ctx context.Context, letter string, first int) *patient {
	c.t.Helper()
	w := &patient{next: first}
	for range 8 {
		conn, err := c.connect(ctx, letter, "shop")
		if err != nil {
			c.t.Fatal(err)
		}
		w.all.Go(func() { w.run(ctx, conn) })
	}
	c.eventually("rows are written", 10*time.Second, func() bool { return w.count() > 100 })
	return w
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
