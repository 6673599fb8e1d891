// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machine

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseStat(t *testing.T) {
	const tail = " S 7 1 1 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 4711 1000 100"
	cases := map[string]struct {
		reason string
		line   string
		want   stat
		err    error
	}{
		"Plain":       {reason: "The fields are counted from the state.", line: "12 (etcd)" + tail, want: stat{'S', 7, 4711}},
		"Spaces":      {reason: "A command may hold spaces.", line: "12 (tmux: server 1)" + tail, want: stat{'S', 7, 4711}},
		"Parentheses": {reason: "A command may look like the end of itself.", line: "12 (a) Z 1 (b)" + tail, want: stat{'S', 7, 4711}},
		"Short":       {reason: "A cut line is no process.", line: "12 (etcd) S 7", err: cmpopts.AnyError},
		"Empty":       {reason: "Nothing is no process.", line: "", err: cmpopts.AnyError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat([]byte(tc.line))
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\n-want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(stat{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAlive(t *testing.T) {
	self, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	later, boot := self, self
	later.Start++
	boot.Boot = "another"
	cases := map[string]struct {
		reason string
		proc   Process
		want   bool
	}{
		"Self":         {reason: "This test runs.", proc: self, want: true},
		"ReusedPID":    {reason: "Another process that got the same pid is not the one meant.", proc: later},
		"EarlierBoot":  {reason: "Start times of two boots cannot be compared.", proc: boot},
		"NoProcess":    {reason: "Nothing was ever recorded.", proc: Process{}},
		"FirstProcess": {reason: "A pid alone proves nothing, least of all that of the machine's first process.", proc: Process{PID: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.proc.Alive(); got != tc.want {
				t.Errorf("%s\nAlive(): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestZombieIsNotAlive(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	proc, err := identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !proc.Alive() {
		t.Error("a process that has just started is not alive")
	}
	if err := proc.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// Nobody has taken note of its end, so it stays in the table of processes.
	if !proc.wait(5 * time.Second) {
		t.Error("a zombie counts as alive")
	}
	_ = cmd.Wait()
}
