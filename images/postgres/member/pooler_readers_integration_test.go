// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/function/database/engine/postgres"
)

// TestPoolerOfReaders: clients of a pooler before the standbys read from standbys only, also from one that is promoted no longer, and wait
// while there is none.
func TestPoolerOfReaders(t *testing.T) {
	p := newToPool(t)
	var turn atomic.Int64
	p.serviceAt(net.JoinHostPort(p.at(41), "5432"), func() string {
		leader := p.leader()
		var standbys []string
		for _, letter := range []string{"a", "b", "c"} {
			if letter != leader && p.probe(letter, "/readyz") == nil {
				standbys = append(standbys, letter)
			}
		}
		if len(standbys) == 0 || leader == "" {
			return ""
		}
		return standbys[int(turn.Add(1))%len(standbys)]
	})
	_, name := p.services()
	p.pooler(0, postgres.Pooler{Host: name, Readers: true, Databases: []string{"shop"}, Mode: postgres.PoolTransactions, PoolSize: 4, MaxClients: 100})
	p.poolersReady()
	address := p.at(51)
	conns := make([]*pgx.Conn, 6)
	for i := range conns {
		var err error
		if conns[i], err = p.through(t.Context(), address, "shop", consumer, consumerPassword); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if conns[i] != nil {
				_ = conns[i].Close(context.Background())
			}
		})
	}
	// read at once with all, so that every connection to a server is used.
	read := func() (standbys map[string]int, err error) {
		standbys = map[string]int{}
		type answer struct {
			from    string
			follows bool
			err     error
		}
		answers := make(chan answer, len(conns))
		for _, c := range conns {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
				defer cancel()
				var a answer
				a.err = c.QueryRow(ctx, "select host(inet_server_addr()), pg_is_in_recovery(), pg_sleep(0.1)::text").Scan(&a.from, &a.follows, nil)
				answers <- a
			}()
		}
		for range conns {
			a := <-answers
			switch {
			case a.err != nil:
				err = a.err
			case !a.follows:
				standbys["leader "+a.from]++
			default:
				standbys[a.from]++
			}
		}
		return standbys, err
	}
	leads := func(from map[string]int) bool {
		for a := range from {
			if len(a) > 6 && a[:6] == "leader" {
				return true
			}
		}
		return false
	}
	from, err := read()
	if err != nil || len(from) < 2 || leads(from) {
		t.Fatalf("clients read from %v: %v, want both standbys", from, err)
	}

	t.Run("NoWrites", func(t *testing.T) {
		if _, err := conns[0].Exec(t.Context(), "insert into public.ledger (id) values (1)"); err == nil {
			t.Error("a reader wrote")
		}
	})

	t.Run("Promoted", func(t *testing.T) {
		p.eventually("commits wait for another member", time.Minute, p.synchronous) // who can lead without a loss
		before := p.leader()
		if out, err := p.running(before).Enter("/usr/local/bin/capstan-member", "handover"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		p.eventually("all members are ready", 3*time.Minute, func() bool { return p.ready("a", "b", "c") && p.leader() != before && p.leader() != "" })
		last := ""
		took := p.eventually("no client reads from the leader", 30*time.Second, func() bool {
			from, err := read()
			last = fmt.Sprint(from, err)
			return err == nil && !leads(from)
		})
		t.Logf("after %s clients read from %s", took, last)
		for range 20 {
			if from, err := read(); err != nil || leads(from) {
				t.Fatalf("clients read from %v: %v, want standbys only", from, err)
			}
		}
	})

	t.Run("NoStandby", func(t *testing.T) {
		leader := p.leader()
		for _, letter := range []string{"a", "b", "c"} {
			if letter != leader {
				p.running(letter).Kill()
			}
		}
		// What was under way is broken off; what comes then waits.
		_, _ = read()
		done := make(chan error, 1)
		go func() {
			for i := range conns { // The pooler closed what was under way.
				var err error
				if conns[i], err = p.through(t.Context(), address, "shop", consumer, consumerPassword); err != nil {
					done <- err
					return
				}
			}
			from, err := read()
			if err == nil && leads(from) {
				err = fmt.Errorf("clients read from %v", from)
			}
			done <- err
		}()
		select {
		case err := <-done:
			t.Fatalf("clients did not wait: %v", err)
		case <-time.After(5 * time.Second):
		}
		for _, letter := range []string{"a", "b", "c"} {
			if letter != leader {
				p.start(letter)
			}
		}
		if err := <-done; err != nil {
			t.Errorf("clients that waited for a standby: %v", err)
		}
	})
}
