// SPDX-License-Identifier: Apache-2.0

package flink_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	contract "github.com/capstan-dev/capstan/apis/flink"
)

const soon = time.Minute

func TestFaults(t *testing.T) {
	t.Parallel()
	throughFaults(t, doubled(t, contract.Plan{SavepointSeconds: 10, KeepSavepoints: 2, Slots: 2}), soon)
}

// TestEnd: a job that ended is not started again in its revision, though its checkpoints are gone.
func TestEnd(t *testing.T) {
	t.Parallel()
	r := doubled(t, contract.Plan{}, "--end=400")
	worker, manager := r.start(contract.RoleTaskManager), r.start(contract.RoleJobManager)
	is := func(s *contract.State) bool { return s.Phase == contract.PhaseFinished }
	r.until("the job ends", soon, is)
	if n := r.exact(); n != 399 {
		t.Errorf("want 399 as the last number, got %d", n)
	}
	r.terminate(manager, soon)
	r.start(contract.RoleJobManager)
	r.until("it is not started again", soon, is)
	if lines := strings.Count(r.account.String(), "account 0 "); lines != 1 {
		t.Errorf("it began %d times", lines)
	}
	r.terminate(worker, soon)
}

// TestLostState: a stream whose state is gone does not begin again at the beginning.
func TestLostState(t *testing.T) {
	t.Parallel()
	r := doubled(t, contract.Plan{})
	worker, manager := r.start(contract.RoleTaskManager), r.start(contract.RoleJobManager)
	r.running(soon)
	r.terminate(manager, soon)
	for _, dir := range []string{contract.CheckpointsDir, contract.SavepointsDir} {
		if err := os.Rename(filepath.Join(r.plan.StateDir, dir), filepath.Join(r.dir, dir)); err != nil {
			t.Fatal(err)
		}
	}
	r.start(contract.RoleJobManager)
	s := r.until("it is blocked", soon, func(s *contract.State) bool { return s.Phase == contract.PhaseBlocked })
	if !strings.Contains(s.Message, "no complete state") {
		t.Errorf("want the cause and a remedy, got %q", s.Message)
	}
	for _, dir := range []string{contract.CheckpointsDir, contract.SavepointsDir} {
		if err := os.RemoveAll(filepath.Join(r.plan.StateDir, dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(r.dir, dir), filepath.Join(r.plan.StateDir, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.running(soon); s.From == nil || !s.From.Savepoint {
		t.Errorf("want a start from the state that came back, got %+v", s.From)
	}
	r.exact()
	r.terminate(worker, soon)
}

// TestMadeAgain: a Pipeline that is deleted and made again goes on from the claim that outlived it, and then from its own states.
func TestMadeAgain(t *testing.T) {
	t.Parallel()
	r := doubled(t, contract.Plan{})
	r.plan.Revision = 7
	worker, manager := r.start(contract.RoleTaskManager), r.start(contract.RoleJobManager)
	r.running(soon)
	r.terminate(manager, soon)
	r.terminate(worker, soon)
	r.plan.Revision = 1
	worker, manager = r.start(contract.RoleTaskManager), r.start(contract.RoleJobManager)
	if s := r.running(soon); s.From == nil || s.From.Revision != 7 {
		t.Errorf("want a start from the state of the former Pipeline, got %+v", s.From)
	}
	r.terminate(manager, soon)
	manager = r.start(contract.RoleJobManager)
	if s := r.running(soon); s.From == nil || s.From.Revision != 1 || !s.From.Savepoint || s.LastStop.Error != "" {
		t.Errorf("want a start from its own savepoint, got %+v after %+v", s.From, s.LastStop)
	}
	r.exact()
	r.terminate(manager, soon)
	r.terminate(worker, soon)
}

// TestForeignState: a stream neither continues the state of another Pipeline, nor removes it.
func TestForeignState(t *testing.T) {
	t.Parallel()
	r := doubled(t, contract.Plan{})
	worker, manager := r.start(contract.RoleTaskManager), r.start(contract.RoleJobManager)
	r.running(soon)
	r.terminate(manager, soon)
	r.terminate(worker, soon)
	r.plan.Pipeline = "clicks"
	manager = r.start(contract.RoleJobManager)
	s := r.until("it is blocked", soon, func(s *contract.State) bool { return s.Phase == contract.PhaseBlocked })
	if !strings.Contains(s.Message, "orders") || !strings.Contains(s.Message, "another claim") {
		t.Errorf("want the owner and a remedy, got %q", s.Message)
	}
	r.terminate(manager, soon)
}

// TestOtherClaim: an edited stream does not begin again at the beginning, because its claim is another one.
func TestOtherClaim(t *testing.T) {
	t.Parallel()
	r := doubled(t, contract.Plan{Revision: 2, Continues: true})
	manager := r.start(contract.RoleJobManager)
	s := r.until("it is blocked", soon, func(s *contract.State) bool { return s.Phase == contract.PhaseBlocked })
	if !strings.Contains(s.Message, "bring it") || !strings.Contains(s.Message, contract.RecordFile) {
		t.Errorf("want the cause and a remedy, got %q", s.Message)
	}
	if err := os.WriteFile(filepath.Join(r.plan.StateDir, contract.RecordFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	worker := r.start(contract.RoleTaskManager)
	if s := r.running(soon); s.From != nil {
		t.Errorf("want a start from the beginning, got %+v", s.From)
	}
	r.terminate(manager, soon)
	r.terminate(worker, soon)
}

// TestBack: a revision that does not run is ignored, and the one before goes on from the savepoint that the edit took.
func TestBack(t *testing.T) {
	for name, fault := range map[string]string{"it does not start": "--broken", "tasks fail": "--failing", "checkpoints fail": "--stuck"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := doubled(t, contract.Plan{SavepointSeconds: 60})
			edit := func(args []string, ignored ...int) (*pod, *pod) {
				r.plan.Args, r.plan.Ignored = args, ignored
				return r.start(contract.RoleTaskManager), r.start(contract.RoleJobManager)
			}
			good := r.plan.Args
			worker, manager := edit(good)
			r.running(soon)
			r.terminate(manager, soon)
			r.terminate(worker, soon)
			r.plan.Revision = 2
			worker, manager = edit(append([]string{fault}, good...))
			s := r.until("it has a fault", soon, func(s *contract.State) bool {
				return s.Revision == 2 && s.Checkpoint == nil && (s.Fault != nil && s.Restarts > 1 || s.CheckpointFault != "")
			})
			if s.From == nil || !s.From.Savepoint {
				t.Fatalf("want a start from the savepoint, got %+v", s.From)
			}
			began := time.Now()
			r.terminate(manager, soon)
			r.terminate(worker, soon)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %s to stop what does not run", took)
			}
			r.plan.Revision = 3
			worker, manager = edit(good, 2)
			back := r.running(soon)
			if back.From == nil || back.From.Path != s.From.Path {
				t.Errorf("want a start from %s again, got %+v", s.From.Path, back.From)
			}
			r.exact()
			r.terminate(manager, soon)
			r.terminate(worker, soon)
		})
	}
}

// TestKept: savepoints that companions took are removed beyond a number, and nothing else is.
func TestKept(t *testing.T) {
	t.Parallel()
	r := doubled(t, contract.Plan{KeepSavepoints: 1})
	foreign := filepath.Join(r.plan.StateDir, contract.SavepointsDir, "mine", "savepoint-1")
	half(t, foreign, "\x49\x60\x67\x2d\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x63state")
	worker := r.start(contract.RoleTaskManager)
	for range 4 {
		manager := r.start(contract.RoleJobManager)
		r.running(soon)
		r.terminate(manager, soon)
	}
	manager := r.start(contract.RoleJobManager)
	s := r.running(soon)
	// The companion removes them after it has reported the checkpoint.
	var left []string
	r.until("old savepoints are removed", soon, func(*contract.State) bool {
		left, _ = filepath.Glob(filepath.Join(r.plan.Savepoints(), "*", contract.MetadataFile))
		return len(left) <= 2
	})
	if len(left) == 0 {
		t.Error("the savepoint in use is removed")
	}
	if s.From == nil || s.Savepoint == nil || s.From.Path != s.Savepoint.Path {
		t.Errorf("want a start from the newest savepoint, got %+v and %+v", s.From, s.Savepoint)
	}
	if _, err := os.Stat(filepath.Join(foreign, contract.MetadataFile)); err != nil {
		t.Errorf("what Capstan did not take is gone: %v", err)
	}
	r.terminate(manager, soon)
	r.terminate(worker, soon)
}

// TestUnsaved: a savepoint that fails keeps the pod for three tries, not for all of its time.
func TestUnsaved(t *testing.T) {
	t.Parallel()
	r := doubled(t, contract.Plan{SavepointSeconds: 60}, "--unsaved")
	worker, manager := r.start(contract.RoleTaskManager), r.start(contract.RoleJobManager)
	before := r.running(soon).Checkpoint.ID
	r.terminate(manager, 20*time.Second)
	manager = r.start(contract.RoleJobManager)
	s := r.running(soon)
	if s.LastStop == nil || !strings.Contains(s.LastStop.Error, "made to fail at savepoints") || s.From == nil || s.From.Savepoint || s.From.ID < before {
		t.Errorf("want the cause, and a start from the last checkpoint, got %+v and %+v", s.LastStop, s.From)
	}
	r.exact()
	r.terminate(manager, soon)
	r.terminate(worker, soon)
}
