// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// killBeginning kills the member that makes the first data when its data folder has a file, and returns it.
func (c *cluster) killBeginning(file string, letters ...string) string {
	c.t.Helper()
	var makes string
	c.eventually("a member makes the data", time.Minute, func() bool {
		for _, l := range letters {
			if _, err := os.Stat(filepath.Join(c.base, "data-"+l, "pgdata", file)); err == nil {
				makes = l
			}
		}
		return makes != ""
	})
	c.running(makes).Kill()
	if l := c.leader(); l != "" {
		c.t.Fatalf("%s leads, and should have been killed before all data was made", l)
	}
	return makes
}

// TestFirstStartKilled: a member that is killed while it makes the first data leaves a claim of Patroni, which all members wait for, and data
// that may lack tables, or the roles that standbys come with.
func TestFirstStartKilled(t *testing.T) {
	for name, file := range map[string]string{"InitDB": "PG_VERSION", "Tables": "global/pg_control", "Roles": "postmaster.pid"} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "a", "b")
			c.start("a")
			c.start("b")
			makes := c.killBeginning(file, "a", "b")
			c.start(makes)
			took := c.eventually("both are ready", 3*time.Minute, func() bool { return c.ready("a", "b") })
			t.Logf("both ready %s after %s was started again", took, makes)
			c.oneLeader()
		})
	}
}

// TestFirstMemberGone: another member makes the data when the pod of the one that began does not run any more. That one copies it later.
func TestFirstMemberGone(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.start("a")
	c.start("b")
	makes := c.killBeginning("PG_VERSION", "a", "b")
	other := map[string]string{"a": "b", "b": "a"}[makes]
	phase := func(phase corev1.PodPhase) {
		p := c.pods()[makes]
		p.Status.Phase = phase
		if _, err := c.client.CoreV1().Pods(c.ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	phase(corev1.PodPending)
	took := c.eventually("the other member leads", 3*time.Minute, func() bool { return c.leader() == other })
	t.Logf("%s leads %s after %s was gone", other, took, makes)
	phase(corev1.PodRunning)
	c.start(makes)
	c.eventually("both are ready", 3*time.Minute, func() bool { return c.ready("a", "b") })
	c.oneLeader()
}

// TestRestoreKilled: a member that is killed while it replays the archive to a time has exactly the rows up to that time in the end.
func TestRestoreKilled(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a"}, archives)
	s.connection(c, "bucket")
	c.want(pgmember.Config{Backup: new(c.settings("a"))})
	begin(t, c, "a")
	if taken, said := c.backup(); taken.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", said)
	}
	// Each step fills some segments, so that a replay takes its time.
	fill := func(step int) {
		statement := fmt.Sprintf("insert into public.ledger select g from generate_series(%d, %d) g", step*500_000, (step+1)*500_000-1)
		if out, err := c.running("a").Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", "shop", "-c", statement); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		c.switchLog("a")
	}
	for step := range 6 {
		fill(step)
	}
	at, err := time.Parse("2006-01-02 15:04:05.999999-07", c.query("a", "select clock_timestamp()::text"))
	if err != nil {
		t.Fatal(err)
	}
	for step := range 2 {
		fill(6 + step)
	}
	c.eventually("all is archived", 3*time.Minute, func() bool { return c.archived("a") })
	for name, kill := range map[string]func(*cluster){
		"Container": func(d *cluster) { d.running("a").Kill() },
		"Patroni":   func(d *cluster) { d.killPatroni("a") },
	} {
		t.Run(name, func(t *testing.T) {
			d := restored(t, s, pgmember.Source{Path: c.settings().Path, At: &at}, "a")
			replays := func() bool {
				out, err := d.running("a").Enter("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
				return err == nil && strings.Contains(out, "startup recovering 0000000")
			}
			d.eventually("it replays", 2*time.Minute, replays)
			kill(d)
			if _, err := os.Stat(filepath.Join(d.base, "data-a", "pgdata", "recovery.signal")); name == "Container" && err != nil {
				t.Fatalf("the replay ended before the member could be killed: %v", err)
			}
			if name == "Container" {
				d.start("a")
			}
			took := d.eventually("the copy is ready", 3*time.Minute, func() bool { return d.ready("a") })
			t.Logf("ready %s after that", took)
			if got := d.query("a", "select count(*)::text || ' ' || max(id)::text from public.ledger"); got != "3000000 2999999" {
				t.Errorf("the copy has rows %s, want 3000000 2999999", got)
			}
		})
	}
}
