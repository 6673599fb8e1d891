// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
