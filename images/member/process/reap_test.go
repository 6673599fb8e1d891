// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGet(t *testing.T) {
	raw, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a) Z 9 (b")
	if err := os.WriteFile(path, raw, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	want := Process{PID: pid, Parent: os.Getpid(), Name: "a) Z 9 (b"}
	until := func(reason string, want Process) {
		t.Helper()
		var got Process
		for range 500 {
			if got, _ = Get(pid); got == want {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%s\nGet(...): -want, +got:\n%s", reason, cmp.Diff(want, got))
	}
	until("One that runs, whatever its name.", want)
	if !slices.Contains(Children(os.Getpid()), want) || !slices.Contains(Descendants(os.Getpid()), want) {
		t.Error("it is not among the children")
	}
	if slices.Contains(Descendants(os.Getpid(), pid), want) {
		t.Error("it is among the descendants without it")
	}
	want.Stopped = true
	_ = cmd.Process.Signal(syscall.SIGSTOP)
	until("One that a signal holds.", want)
	want.Stopped, want.Dead = false, true
	_ = cmd.Process.Kill()
	until("One that ended, and nobody waited for it.", want)
	_ = cmd.Wait()
	if got, ok := Get(pid); ok {
		t.Errorf("One that is gone is there: %v", got)
	}
}

func TestTitle(t *testing.T) {
	child, err := Start("/bin/sleep", nil, "60")
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine the kernel may not have set it yet.
	for until := time.Now().Add(10 * time.Second); Title(child.PID()) == "" && time.Now().Before(until); time.Sleep(time.Millisecond) {
	}
	if diff := cmp.Diff("/bin/sleep 60", Title(child.PID())); diff != "" {
		t.Errorf("Title(...): -want, +got:\n%s", diff)
	}
	if err := child.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	if got := Title(child.PID()); got != "" {
		t.Errorf("Title(...) of one that ended = %q, want nothing", got)
	}
}
