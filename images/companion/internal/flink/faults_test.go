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

// throughFaults takes a stream through every fault that one of its processes can have. Whatever happens, each number is counted once.
func throughFaults(t *testing.T, r *rig, long time.Duration) {
	t.Helper()
	manager, worker := r.start(contract.RoleJobManager), r.start(contract.RoleTaskManager)
	s := r.running(long)
	t.Logf("first start: %+v, checkpoint %+v", s, s.Checkpoint)
	if s.From != nil || s.Parallelism != 2 || s.TaskManagers != 1 {
		t.Errorf("want a start from the beginning with two slots, got %+v", s)
	}

	began := time.Now()
	worker.kill()
	r.until("the loss is noticed", long, func(s *contract.State) bool { return s.Phase == contract.PhaseRestarting })
	t.Logf("TaskManager killed, noticed after %s", time.Since(began))
	worker = r.start(contract.RoleTaskManager)
	s = r.running(long)
	t.Logf("TaskManager killed, a checkpoint after %s, restarts %d, fault %+v", time.Since(began), s.Restarts, s.Fault)
	if s.Restarts == 0 || s.Fault == nil {
		t.Errorf("want a restart and its cause, got %+v", s)
	}
	highest := r.exact()

	began = time.Now()
	before := s.Checkpoint.ID
	manager.kill()
	half(t, filepath.Join(r.plan.Checkpoints(), r.plan.JobID, "chk-9999"), "")
	half(t, filepath.Join(r.plan.Savepoints(), "savepoint-half"), "\x49\x60\x67\x2d\x00\x00")
	manager = r.start(contract.RoleJobManager)
	s = r.running(long)
	t.Logf("JobManager killed, a checkpoint after %s, from %+v", time.Since(began), s.From)
	if s.From == nil || s.From.ID < before || s.From.Savepoint || strings.Contains(s.From.Path, "9999") {
		t.Errorf("want a start from the newest complete checkpoint, at least %d, got %+v", before, s.From)
	}
	if now := r.exact(); now <= highest {
		t.Errorf("nothing was counted since: %d", now)
	}

	// An edit: both pods have to go at once, and the TaskManager first.
	began = time.Now()
	taskGone := make(chan struct{})
	go func() { defer close(taskGone); r.terminate(worker, long) }()
	time.Sleep(time.Second)
	r.terminate(manager, long)
	<-taskGone
	t.Logf("both stopped after %s: %s", time.Since(began), tail(manager.log.String(), 200))
	r.plan.Revision = 2
	manager, worker = r.start(contract.RoleJobManager), r.start(contract.RoleTaskManager)
	s = r.running(long)
	t.Logf("edit, a checkpoint after %s, from %+v", time.Since(began), s.From)
	if s.From == nil || !s.From.Savepoint || s.From.Revision != 1 || s.LastStop == nil || s.LastStop.Savepoint == nil || s.LastStop.Savepoint.Path != s.From.Path {
		t.Errorf("want a start from the savepoint that the edit took, got %+v after %+v", s.From, s.LastStop)
	}
	highest = r.exact()

	// A savepoint that cannot be taken: a file is where its folder would be.
	began = time.Now()
	if err := os.RemoveAll(r.plan.Savepoints()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.plan.Savepoints(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before = r.state().Checkpoint.ID
	r.terminate(manager, long)
	t.Logf("stopped without a savepoint after %s: %s", time.Since(began), tail(manager.log.String(), 400))
	if err := os.Remove(r.plan.Savepoints()); err != nil {
		t.Fatal(err)
	}
	manager = r.start(contract.RoleJobManager)
	s = r.running(long)
	t.Logf("a checkpoint after %s, from %+v, last stop %+v", time.Since(began), s.From, s.LastStop)
	if s.From == nil || s.From.Savepoint || s.From.ID < before || s.LastStop == nil || s.LastStop.Error == "" {
		t.Errorf("want a start from the last checkpoint, at least %d, and a report of why; got %+v after %+v", before, s.From, s.LastStop)
	}
	if now := r.exact(); now <= highest {
		t.Errorf("nothing was counted since: %d", now)
	}
	worker.kill()
	manager.kill()
}

// half of a state that is not complete.
func half(t *testing.T, dir, metadata string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "state"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if metadata == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, contract.MetadataFile), []byte(metadata), 0o600); err != nil {
		t.Fatal(err)
	}
}
