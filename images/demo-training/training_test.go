// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// rig runs the ranks of one attempt in this process, and returns their exit codes and what rank 0 said.
func rig(t *testing.T, o Options, leaving func() bool) (codes []int, said string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("the address has no port")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o.Address, o.Port, o.Join = "127.0.0.1", addr.Port, 10*time.Second
	codes = make([]int, o.World)
	outs := make([]bytes.Buffer, o.World)
	var all sync.WaitGroup
	for rank := range o.World {
		own := o
		own.Rank = rank
		all.Go(func() {
			code, err := run(t.Context(), own, &outs[rank], leaving)
			if err != nil {
				t.Logf("rank %d: %v", rank, err)
			}
			codes[rank] = code
		})
	}
	all.Wait()
	return codes, outs[0].String()
}

func never() bool { return false }

func TestFaultsDoNotChangeTheSum(t *testing.T) {
	dir := t.TempDir()
	o := Options{Steps: 30, Step: time.Millisecond, Every: 4, Keep: 2, World: 3, Checkpoints: dir, Fault: []string{"exit:1:14", "exit:0:22:1"}}
	resumed := []string{"", filepath.Join(dir, "attempt-0-step-00000012"), filepath.Join(dir, "attempt-1-step-00000020")}
	for attempt, from := range resumed {
		o.Attempt, o.Resume = attempt, from
		codes, said := rig(t, o, never)
		if attempt < 2 {
			if codes[0] == 0 || strings.Contains(said, "exact") {
				t.Fatalf("attempt %d ended with %v and said %s, want a fault", attempt, codes, said)
			}
			continue
		}
		if diff := cmp.Diff([]int{0, 0, 0}, codes); diff != "" {
			t.Errorf("exit codes: -want, +got:\n%s", diff)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got Result
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	sum := want(3, 30)
	if diff := cmp.Diff(Result{Steps: 30, World: 3, Attempt: 2, Counted: 30, Sum: sum, Want: sum, Exact: true}, got); diff != "" {
		t.Errorf("result: -want, +got:\n%s", diff)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", manifest))
	if err != nil || len(left) != 2 {
		t.Errorf("%d checkpoints are kept (%v), want 2", len(left), err)
	}
}

func TestAStepTooManyIsFound(t *testing.T) {
	dir := t.TempDir()
	o := Options{Steps: 8, Every: 4, Keep: 5, World: 2, Checkpoints: dir}
	if codes, _ := rig(t, o, never); codes[0] != 0 {
		t.Fatalf("the first training ended with %v", codes)
	}
	from := filepath.Join(dir, "attempt-0-step-00000004")
	for _, name := range []string{manifest, partName(0), partName(1)} {
		s := state{Step: 3, Counted: 4, World: 2}
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(filepath.Join(from, name), raw); err != nil {
			t.Fatal(err)
		}
	}
	o.Resume = from
	if codes, said := rig(t, o, never); codes[0] != 1 || !strings.Contains(said, `"exact":false`) {
		t.Errorf("a step that is counted twice ended with %v and said %s, want a failure", codes, said)
	}
}

// TestACheckpointByTime: all ranks write one at the same step, when rank 0 says that it is time.
func TestACheckpointByTime(t *testing.T) {
	dir := t.TempDir()
	o := Options{Steps: 30, Step: 50 * time.Millisecond, Every: 1, Keep: 100, World: 3, Checkpoints: dir, Interval: 1}
	if codes, said := rig(t, o, never); !cmp.Equal([]int{0, 0, 0}, codes) {
		t.Fatalf("ended with %v and said %s", codes, said)
	}
	found, err := filepath.Glob(filepath.Join(dir, "attempt-0-step-*", manifest))
	if err != nil || len(found) < 2 || len(found) == 30 || filepath.Base(filepath.Dir(found[len(found)-1])) != "attempt-0-step-00000030" {
		t.Errorf("want one each second and one at the end, got %v, %v", found, err)
	}
}

func TestLeavingWritesACheckpoint(t *testing.T) {
	dir := t.TempDir()
	var asked atomic.Bool
	time.AfterFunc(50*time.Millisecond, func() { asked.Store(true) })
	codes, said := rig(t, Options{Steps: 1e6, Step: time.Millisecond, Every: 1e5, Keep: 1, World: 2, Checkpoints: dir}, asked.Load)
	if diff := cmp.Diff([]int{terminated, terminated}, codes); diff != "" {
		t.Errorf("exit codes: -want, +got:\n%s", diff)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", manifest))
	if err != nil || len(left) != 1 || !strings.Contains(said, "checkpoint="+filepath.Dir(left[0])) {
		t.Errorf("checkpoints %v (%v), and rank 0 said %s", left, err, said)
	}
}

func TestParseFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		text   string
		want   []fault
		fails  bool
	}{
		"First":     {reason: "Without an attempt it is the first.", text: "kill:1:30", want: []fault{{kind: kill, rank: 1, step: 30}}},
		"Named":     {reason: "An attempt can be named.", text: "hang:0:7:2", want: []fault{{kind: hang, step: 7, attempt: 2}}},
		"Each":      {reason: "A star is each attempt.", text: "exit:0:1:*", want: []fault{{kind: exit, step: 1, attempt: -1}}},
		"Unknown":   {reason: "Kinds that do not exist are refused, so that no test passes for want of its fault.", text: "explode:1:30", fails: true},
		"Few parts": {reason: "A fault without a step never happens.", text: "kill:1", fails: true},
		"No number": {reason: "Steps are numbers.", text: "kill:1:soon", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseFaults([]string{tc.text})
			if (err != nil) != tc.fails {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(fault{})); diff != "" {
				t.Errorf("%s\nparseFaults(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFaultByFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "fault-1")
	if err := os.WriteFile(file, []byte("nan\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := rank{options: Options{Rank: 1, Checkpoints: dir}}
	if first, second := r.due(1), r.due(2); first != nan || second != none {
		t.Errorf("the fault of the file is %q and then %q, want it once", first, second)
	}
}
