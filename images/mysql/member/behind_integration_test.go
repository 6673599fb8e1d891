// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"strconv"
	"testing"
	"time"
)

// TestBehind: a standby is online in its group, and receives less than its leader commits. Clients must not be sent to one that gets older
// and older.
func TestBehind(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w, p := c.write(), c.askAll()
	w.goesOn(10 * time.Second)
	c.through(t, w, p, []step{{"FollowersCut", followersCut}})
}

// followersCut: two standbys do not hear from each other, and both hear from the leader. One of them may receive ever less of what the group
// commits, and has executed all that it received: without a bound it was ready with rows of three minutes before.
func followersCut(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	one, two := c.followers()[0], c.followers()[1]
	c.part(one, two)
	// The program compares every 10 s, and allows a minute.
	const bound = 2 * time.Minute
	rows := map[int]time.Time{} // that were acknowledged by these times
	for begun := time.Now(); time.Since(begun) < 2*bound; time.Sleep(5 * time.Second) {
		rows[w.count()] = time.Now()
		for _, l := range []string{one, two} {
			ready := c.probe(l, "/readyz") == nil
			has, err := strconv.Atoi(c.inside(l, "SELECT COUNT(*) FROM shop.ledger"))
			if err != nil {
				continue // it left the group
			}
			var old time.Duration
			for n, at := range rows {
				if n > has {
					old = max(old, time.Since(at))
				}
			}
			t.Logf("after %s %s has %d of %d rows, is %s old, ready: %t", time.Since(begun).Round(time.Second), l, has, w.count(), old.Round(time.Second), ready)
			if ready && old > bound {
				t.Fatalf("clients are sent to %s, which lacks rows that were acknowledged %s ago", l, old.Round(time.Second))
			}
		}
	}
	w.goesOn(30 * time.Second)
	c.unite(one, two)
	c.whole(w)
}
