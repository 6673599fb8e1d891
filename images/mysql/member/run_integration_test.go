// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/test/outside"
)

// memberProgram is the program as it is built for its image.
var memberProgram string

func TestMain(m *testing.M) {
	if raw := os.Getenv(asContainer); raw != "" {
		fmt.Fprintln(os.Stderr, become(raw))
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "capstan-member-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = os.Chmod(dir, 0o755)
	memberProgram = filepath.Join(dir, "capstan-member")
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", memberProgram, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot build the program: %v: %s\n", err, out)
		os.Exit(1)
	}
	code := outside.Main(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// begin a Database with a table to write to.
func begin(t *testing.T, c *cluster, letters ...string) {
	t.Helper()
	for _, l := range letters {
		c.start(l)
	}
	took := c.eventually("all members are ready", 90*time.Second, func() bool { return c.ready(letters...) })
	t.Logf("%d members ready after %s", len(letters), took)
	var err error
	c.eventually("the platform can log in", 30*time.Second, func() bool {
		conn := c.connect(c.leader(), "")
		defer func() { _ = conn.Close() }()
		_, err = conn.ExecContext(t.Context(), "CREATE DATABASE IF NOT EXISTS shop")
		return err == nil
	})
	conn := c.connect(c.leader(), "shop")
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(t.Context(), "CREATE TABLE ledger (id BIGINT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
}

// TestOneMember begins, serves, stops in order, and begins again with its data.
func TestOneMember(t *testing.T) {
	c := newCluster(t, "a")
	begin(t, c, "a")
	w := c.write()
	w.goesOn(10 * time.Second)
	c.eventually("the status is told", 10*time.Second, func() bool {
		s, r, role := c.status("a")
		return s.State == members.StateRunning && s.Role == members.StatusPrimary && s.Timeline == 1 && r.Version == "9.7.4" && r.Reason == "" && role == members.RoleLeader
	})
	begun := time.Now()
	c.running("a").terminate(true)
	t.Logf("stopped after %s", time.Since(begun).Round(time.Millisecond))
	if s, _, role := c.status("a"); s.State != members.StateStopped || role != "" || c.annotations(members.SuffixLeader)[members.AnnotationLeader] != "" {
		t.Errorf("it stopped, and tells %v with the role %q, of the leader %q", s, role, c.annotations(members.SuffixLeader)[members.AnnotationLeader])
	}
	c.start("a")
	t.Logf("ready again after %s", c.eventually("it serves again", time.Minute, func() bool { return c.ready("a") }))
	w.goesOn(20 * time.Second)
	w.check(t)
}

// TestThreeMembers form a group by copying the first one, and it survives what happens to members, without a lost row.
func TestThreeMembers(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w := c.write()
	w.goesOn(10 * time.Second)
	for _, step := range []struct {
		name string
		do   func(*testing.T, *cluster, *writer)
	}{
		{"Told", told},
		{"Handover", handOver},
		{"Switchover", switchOver},
		{"ServerKilled", serverKilled},
		{"ServerFrozen", serverFrozen},
		{"EverythingFrozen", everythingFrozen},
		{"AllKilled", allKilled},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			c.t = t
			c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
			w.goesOn(10 * time.Second)
			w.reset()
			step.do(t, c, w)
		}) {
			_, errs := w.reset()
			t.Log(errs)
		}
	}
	c.t = t
	c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
	w.check(t)
	c.oneLeader()
}

// told: the status of each member, and the record of the group.
func told(t *testing.T, c *cluster, _ *writer) {
	c.eventually("all tell their status", 15*time.Second, func() bool {
		for _, l := range c.letters {
			s, r, role := c.status(l)
			if r.Reason != "" || s.State != members.StateRunning {
				return false
			}
			if l == c.leader() {
				if s.Role != members.StatusPrimary || role != members.RoleLeader {
					return false
				}
			} else if s.Role != members.StatusReplica || role != members.RoleReplica || !s.Synchronous || s.Replication != members.Streaming || s.Lag != members.LagInSync {
				return false
			}
		}
		return true
	})
	t.Log(c.annotations(members.SuffixLeader))
	t.Log(c.inside("b", "SHOW GRANTS FOR capstan@'%'"))
}

// gap of the writer over a step: once the writes go on again.
func gapOf(t *testing.T, c *cluster, w *writer, former string) {
	t.Helper()
	c.eventually("another member leads", time.Minute, func() bool { l := c.leader(); return l != "" && l != former })
	w.goesOn(time.Minute)
	gap, errs := w.reset()
	t.Logf("writes waited %s; %v", gap, errs)
}

func handOver(t *testing.T, c *cluster, w *writer) {
	former := c.leader()
	begun := time.Now()
	c.running(former).terminate(true)
	t.Logf("stopped after %s", time.Since(begun).Round(time.Millisecond))
	gapOf(t, c, w, former)
	c.start(former)
	t.Logf("ready again after %s", c.eventually("it follows", 2*time.Minute, func() bool { return c.ready(former) }))
}

func switchOver(t *testing.T, c *cluster, w *writer) {
	former, next := c.leader(), c.followers()[1]
	c.annotate(members.SuffixFailover, "provider", map[string]string{
		members.AnnotationLeader: c.identify(former).Pod, members.AnnotationCandidate: c.identify(next).Pod,
	})
	gapOf(t, c, w, former)
	if l := c.leader(); l != next {
		t.Errorf("%s leads, want %s", l, next)
	}
	c.eventually("the wish is removed", 20*time.Second, func() bool {
		a := c.annotations(members.SuffixFailover)
		return a[members.AnnotationLeader] == "" && a[members.AnnotationCandidate] == ""
	})
}

func serverKilled(t *testing.T, c *cluster, w *writer) {
	former := c.leader()
	if err := syscall.Kill(c.running(former).server(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gapOf(t, c, w, former)
	t.Logf("ready again after %s", c.eventually("it follows", 2*time.Minute, func() bool { return c.ready(former) }))
}

// serverFrozen alone: its program sees that it does not answer.
func serverFrozen(t *testing.T, c *cluster, w *writer) {
	former := c.leader()
	pid := c.running(former).server()
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	gapOf(t, c, w, former)
	_ = syscall.Kill(pid, syscall.SIGCONT)
	t.Logf("ready again after %s", c.eventually("it follows", 2*time.Minute, func() bool { return c.ready(former) }))
}

// everythingFrozen: when it goes on it takes itself for the leader for a moment, and must not take the label back.
func everythingFrozen(t *testing.T, c *cluster, w *writer) {
	former := c.leader()
	c.running(former).signal(syscall.SIGSTOP, nil)
	gapOf(t, c, w, former)
	c.running(former).signal(syscall.SIGCONT, nil)
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if _, _, role := c.status(former); role == members.RoleLeader {
			t.Fatal("it took the label of the leader back")
		}
	}
	t.Logf("ready again after %s", c.eventually("it follows", 2*time.Minute, func() bool { return c.ready(former) }))
}

// allKilled at once: the one that has all begins again.
func allKilled(t *testing.T, c *cluster, w *writer) {
	for _, l := range c.letters {
		_ = syscall.Kill(c.running(l).server(), syscall.SIGKILL)
	}
	t.Logf("ready again after %s", c.eventually("all are back", 3*time.Minute, func() bool { return c.ready("a", "b", "c") }))
	w.goesOn(time.Minute)
	gap, errs := w.reset()
	t.Logf("writes waited %s; %v; %v", gap, errs, c.annotations(members.SuffixLeader))
}
