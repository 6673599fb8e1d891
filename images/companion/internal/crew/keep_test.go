// SPDX-License-Identifier: Apache-2.0

package crew_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	contract "github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/checkpoints"
)

// folder of checkpoints: what is in it.
func (r *rig) folder() []string {
	r.t.Helper()
	entries, err := os.ReadDir(filepath.Join(r.dir, "checkpoints"))
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestKeep: old checkpoints go while the ranks run, and after a fault they continue from the newest. In the end as many are left as the plan
// keeps, and everything that is none.
func TestKeep(t *testing.T) {
	plan := contract.Plan{Workers: 2, Checkpoints: &contract.Checkpoints{Complete: complete, Keep: 2}}
	r := newRig(t, plan, demo(t, "--steps=160", "--step=50ms", "--every=5", "--keep=100")...)
	r.mkdir("checkpoints/attempt-0-step-00000003") // It is not complete.
	r.write("checkpoints/notes.txt", "mine")
	r.begin(r.all()...)
	r.until("the first checkpoint is removed", 30*time.Second, func(s contract.State) bool {
		return s.Checkpoint != nil && s.Checkpoint.Step > 5 && !slices.Contains(r.folder(), "attempt-0-step-00000005")
	})
	r.kill(1)
	r.begin(1)
	for _, index := range r.all() {
		if code := r.code(index, 60*time.Second); code != contract.ExitDone {
			t.Errorf("pod %d ended with %d", index, code)
		}
	}
	r.exact()
	want := []string{
		".capstan-fraud.json", "attempt-0-step-00000003", "attempt-1-step-00000155", "attempt-1-step-00000160", "notes.txt", "result.json",
	}
	if diff := cmp.Diff(want, r.folder()); diff != "" {
		t.Errorf("what is left: -want, +got:\n%s", diff)
	}
	raw, err := os.ReadFile(filepath.Join(r.dir, "checkpoints", ".capstan-fraud.json"))
	if err != nil {
		t.Fatal(err)
	}
	var record checkpoints.Record
	if err := json.Unmarshal(raw, &record); err != nil || len(record.Reported) != 2 || !record.Ended {
		t.Errorf("the record should have what is left, got %s, %v", raw, err)
	}
}

// TestEvery: a program that knows the time between two checkpoints follows it.
func TestEvery(t *testing.T) {
	plan := contract.Plan{Workers: 2, Checkpoints: &contract.Checkpoints{Complete: complete, EverySeconds: 1}}
	r := newRig(t, plan, demo(t, "--steps=100", "--step=50ms", "--keep=100", "--every=100")...)
	r.begin(r.all()...)
	r.until("a checkpoint before the last step", 30*time.Second, func(s contract.State) bool {
		return s.Checkpoint != nil && s.Checkpoint.Step < 100 && s.Phase == contract.PhaseRunning
	})
	for _, index := range r.all() {
		if code := r.code(index, 60*time.Second); code != contract.ExitDone {
			t.Errorf("pod %d ended with %d", index, code)
		}
	}
	r.exact()
}

// TestOverdue: a program that writes none is found out, and what it writes in the end counts.
func TestOverdue(t *testing.T) {
	plan := contract.Plan{Workers: 1, Checkpoints: &contract.Checkpoints{EverySeconds: 1}}
	r := newRig(t, plan, "/bin/sh", "-c", `echo every $CAPSTAN_CHECKPOINT_EVERY
		i=0; until test -e $CAPSTAN_CHECKPOINTS/go; do i=$((i+1)); echo "{\"step\":$i}" >> $CAPSTAN_PROGRESS; sleep 0.2; done
		mkdir $CAPSTAN_CHECKPOINTS/$i; echo "{\"step\":$i,\"checkpoint\":\"$CAPSTAN_CHECKPOINTS/$i\"}" >> $CAPSTAN_PROGRESS
		until test -e $CAPSTAN_CHECKPOINTS/end; do sleep 0.2; done`)
	r.begin(0)
	r.until("a checkpoint is overdue", 30*time.Second, func(s contract.State) bool { return s.OverdueSince != nil })
	r.write("checkpoints/go", "")
	r.until("none is any more", 30*time.Second, func(s contract.State) bool { return s.OverdueSince == nil && s.Checkpoint != nil })
	r.write("checkpoints/end", "")
	if code := r.code(0, 30*time.Second); code != contract.ExitDone {
		t.Errorf("the pod ended with %d", code)
	}
	if out := r.pods[0].out.String(); !strings.Contains(out, "every 1\n") {
		t.Errorf("the program should know the time in seconds, and printed %.200s", out)
	}
}

// TestRemoveFails: what cannot be removed is whole, or not complete, and the error has the remedy.
func TestRemoveFails(t *testing.T) {
	if !apart(t) {
		return
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatalf("cannot make mounts private: %v", err)
	}
	mount := func(dir string, flags uintptr) {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, "size=1m"); err != nil {
			t.Fatalf("cannot mount: %v", err)
		}
	}
	fill := func(dir string) checkpoints.Folder {
		if err := os.MkdirAll(filepath.Join(dir, "step-1"), 0o750); err != nil {
			t.Fatal(err)
		}
		return checkpoints.Folder{Dir: dir, Complete: "step-*/DONE", Training: "fraud"}
	}
	write := func(dir string) {
		for _, name := range []string{"DONE", "weights"} {
			if err := os.WriteFile(filepath.Join(dir, "step-1", name), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := func(dir string) []string {
		found, err := fs.Glob(os.DirFS(dir), "step-1/*")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	t.Run("ReadOnly", func(t *testing.T) {
		dir := t.TempDir()
		mount(dir, 0)
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		f := fill(dir)
		write(dir)
		mount(dir, syscall.MS_REMOUNT|syscall.MS_RDONLY)
		gone, err := f.Remove([]string{"step-1"}, nil)
		if len(gone) > 0 || err == nil || !strings.Contains(err.Error(), "let the pods write there") || len(left(dir)) != 2 {
			t.Errorf("want a whole checkpoint and the remedy, got %v, %v, %v", gone, err, left(dir))
		}
	})
	t.Run("NoRename", func(t *testing.T) {
		dir := t.TempDir()
		f := fill(dir)
		mount(filepath.Join(dir, "step-1"), 0)
		t.Cleanup(func() { _ = syscall.Unmount(filepath.Join(dir, "step-1"), syscall.MNT_DETACH) })
		write(dir)
		gone, err := f.Remove([]string{"step-1"}, nil)
		if len(gone) > 0 || err == nil || !strings.Contains(err.Error(), "busy") || len(left(dir)) > 0 {
			t.Errorf("want what is in it to go, and the folder itself to be reported, got %v, %v, %v", gone, err, left(dir))
		}
	})
}
