// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestParametersWhileJoining changes the size of binary logs all the time while a member without data copies it and joins the group. The
// server hung for ever when a change met the start of a replication channel, in the first round of two runs.
func TestParametersWhileJoining(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w := c.write()
	w.goesOn(10 * time.Second)
	sizes := []string{"1073741824", "104857600"}
	changes := 0
	for round := range 3 {
		c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready(c.letters...) })
		emptied := c.followers()[round%2]
		c.running(emptied).Kill()
		if err := os.RemoveAll(filepath.Join(c.base, "data-"+emptied)); err != nil {
			t.Fatal(err)
		}
		c.start(emptied)
		took := c.eventually("the member that lost its data follows", 2*time.Minute, func() bool {
			changes++
			c.dynamic = map[string]string{"max_binlog_size": sizes[changes%len(sizes)]}
			c.compose()
			return c.ready(emptied)
		})
		t.Logf("round %d: %s follows after %s and %d changes", round+1, emptied, took, changes)
	}
	w.goesOn(10 * time.Second)
	w.check(t)
	c.oneLeader()
}
