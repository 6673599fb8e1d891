// SPDX-License-Identifier: Apache-2.0

package crew_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	contract "github.com/capstan-dev/capstan/apis/crew"
)

// apart runs a test in a mount namespace of its own, as root there: what it mounts is gone with it. It reports whether this is the
// process that is apart.
func apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(role) == "apart" {
		t.Setenv(role, "")
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v")
	cmd.Env = append(os.Environ(), role+"=apart")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("apart: %v\n%s", err, out)
	}
	return false
}

// mount a small file system as the folder of checkpoints.
func (r *rig) mount(flags uintptr, options string) {
	r.t.Helper()
	dir := filepath.Join(r.dir, "checkpoints")
	// Nothing that is mounted here may reach the machine.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		r.t.Fatalf("cannot make mounts private: %v", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		r.t.Fatalf("cannot mount: %v", err)
	}
	r.t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// TestAFullFolder: what cannot be written ends the run after some attempts, with the cause in its last words.
func TestAFullFolder(t *testing.T) {
	if !apart(t) {
		return
	}
	plan := contract.Plan{Workers: 2, Checkpoints: &contract.Checkpoints{Complete: complete}}
	r := newRig(t, plan, demo(t, "--steps=60", "--step=10ms", "--every=10", "--keep=9", "--pad=100000")...)
	r.mount(0, "size=1m")
	r.begin(r.all()...)
	for _, index := range r.all() {
		if code := r.code(index, 60*time.Second); code != contract.ExitFailed {
			t.Errorf("pod %d ended with %d, want %d", index, code, contract.ExitFailed)
		}
	}
	s := r.last()
	if s.Phase != contract.PhaseFailed || !strings.Contains(s.Message, "no space left on device") || s.Checkpoint == nil || s.Checkpoint.Step < 10 {
		t.Errorf("last words: %+v, want the cause and the newest checkpoint that is complete", s)
	}
}

// TestAReadOnlyFolder ends the run in the same way, and nobody waits for what is never there.
func TestAReadOnlyFolder(t *testing.T) {
	if !apart(t) {
		return
	}
	plan := contract.Plan{Workers: 2, Checkpoints: &contract.Checkpoints{Complete: complete}}
	r := newRig(t, plan, demo(t, "--steps=60", "--step=10ms", "--every=10")...)
	r.mount(syscall.MS_RDONLY, "size=1m")
	r.begin(r.all()...)
	for _, index := range r.all() {
		if code := r.code(index, 60*time.Second); code != contract.ExitFailed {
			t.Errorf("pod %d ended with %d, want %d", index, code, contract.ExitFailed)
		}
	}
	if s := r.last(); s.Phase != contract.PhaseFailed || !strings.Contains(s.Message, "read-only file system") {
		t.Errorf("last words: %+v, want the cause", s)
	}
}

// TestAFolderThatFills: a program whose checkpoints are elsewhere is not disturbed by a record that cannot be written, and that is reported.
func TestAFolderThatFills(t *testing.T) {
	if !apart(t) {
		return
	}
	plan := contract.Plan{Workers: 1, Checkpoints: &contract.Checkpoints{}}
	r := newRig(t, plan, "/bin/sh", "-c", `: > $CAPSTAN_CHECKPOINTS/fill; cat /dev/zero > $CAPSTAN_CHECKPOINTS/fill; for i in 1 2 3 4 5; do
		echo "{\"step\":$i,\"of\":5,\"checkpoint\":\"s3://models/$i\"}" >> $CAPSTAN_PROGRESS; sleep 1; done`)
	r.mount(0, "size=1m")
	r.begin(0)
	s := r.until("the coordinator says that the folder is full", 30*time.Second, func(s contract.State) bool {
		return strings.Contains(s.Message, "no space left on device") || s.Phase == contract.PhaseSucceeded
	})
	t.Logf("while it runs: %s", s.Message)
	if code := r.code(0, 30*time.Second); code != contract.ExitDone {
		t.Errorf("the pod ended with %d", code)
	}
}
