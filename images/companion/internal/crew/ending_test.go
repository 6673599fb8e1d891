// SPDX-License-Identifier: Apache-2.0

package crew_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	contract "github.com/capstan-dev/capstan/apis/crew"
)

// terminate pods at once, as when a queue takes a run back.
func (r *rig) terminate(indexes ...int) {
	r.t.Helper()
	for _, index := range indexes {
		if err := r.pods[index].cmd.Process.Signal(syscall.SIGTERM); err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestTheWholeRunHasToGo: all ranks write a checkpoint, and the next run begins with it. No step is lost.
func TestTheWholeRunHasToGo(t *testing.T) {
	plan := contract.Plan{Workers: 2, Processes: 2, GraceSeconds: 20, Checkpoints: &contract.Checkpoints{Complete: complete}}
	// Checkpoints that a rank writes by itself are rare, so that the newest one is of the end.
	r := newRig(t, plan, demo(t, "--steps=400", "--step=20ms", "--every=100000")...)
	r.begin(r.all()...)
	r.until("some steps", 30*time.Second, func(s contract.State) bool { return s.Progress.Step > 20 })
	r.terminate(r.all()...)
	for _, index := range r.all() {
		if code := r.code(index, 30*time.Second); code != contract.ExitEnded {
			t.Errorf("pod %d ended with %d, want %d", index, code, contract.ExitEnded)
		}
	}
	s := r.last()
	if s.Checkpoint == nil || s.Checkpoint.Step < 20 || s.Phase == contract.PhaseFailed || s.Phase == contract.PhaseSucceeded {
		t.Fatalf("last words: %+v, want a checkpoint and no end", s)
	}
	r.begin(r.all()...)
	for _, index := range r.all() {
		if code := r.code(index, 60*time.Second); code != contract.ExitDone {
			t.Errorf("pod %d of the next run ended with %d", index, code)
		}
	}
	r.exact()
	if out := r.pods[0].out.String(); !strings.Contains(out, "resumed after step "+strconv.FormatInt(s.Checkpoint.Step, 10)+" from") {
		t.Errorf("the next run should go on after step %d, but says %.300s", s.Checkpoint.Step, out)
	}
}

// TestADeafRank: a rank that hangs and ignores SIGTERM ends with the attempt, and the run goes on. Its pod goes within its time, too.
func TestADeafRank(t *testing.T) {
	plan := contract.Plan{Workers: 2, Checkpoints: &contract.Checkpoints{Complete: complete}, Watch: contract.Watch{Phases: contract.Phases{Step: 1}}}
	r := newRig(t, plan, demo(t, "--steps=40", "--step=10ms", "--every=10", "--fault=deaf:1:25")...)
	r.begin(r.all()...)
	for _, index := range r.all() {
		if code := r.code(index, 60*time.Second); code != contract.ExitDone {
			t.Errorf("pod %d ended with %d", index, code)
		}
	}
	r.exact()

	plan.Watch, plan.GraceSeconds = contract.Watch{}, 2
	r = newRig(t, plan, demo(t, "--steps=1000", "--step=10ms", "--every=10", "--fault=deaf:1:25")...)
	r.begin(r.all()...)
	r.until("the step before", 30*time.Second, func(s contract.State) bool { return s.Progress.Step == 24 })
	began := time.Now()
	r.terminate(r.all()...)
	for _, index := range r.all() {
		if code := r.code(index, 30*time.Second); code != contract.ExitEnded {
			t.Errorf("pod %d ended with %d, want %d", index, code, contract.ExitEnded)
		}
	}
	if took, limit := time.Since(began), (2+contract.LeaveSeconds)*time.Second; took > limit {
		t.Errorf("the pods took %s, and are killed after %s", took, limit)
	}
}

// TestUnfit: another pod may do better than this one, so that nobody may take its end for the end of the run.
func TestUnfit(t *testing.T) {
	r := newRig(t, contract.Plan{Workers: 2}, demo(t)...)
	taken, err := net.Listen("tcp", net.JoinHostPort(r.net+"1", strconv.Itoa(contract.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	r.begin(0)
	if code := r.code(0, 30*time.Second); code != contract.ExitUnfit {
		t.Errorf("a coordinator that cannot listen ended with %d, want %d", code, contract.ExitUnfit)
	}
	words, err := os.ReadFile(filepath.Join(r.dir, "words-0"))
	if err != nil {
		t.Fatal(err)
	}
	var s contract.State
	if err := json.Unmarshal(words, &s); err == nil && s.Phase == contract.PhaseFailed {
		t.Errorf("its last words %s say that the run has failed, and another pod may coordinate it", words)
	}
	if !strings.Contains(string(words), "address already in use") {
		t.Errorf("its last words %q should have the reason", words)
	}

	r = newRig(t, contract.Plan{Workers: 2}, demo(t)...)
	r.waitLimit = time.Second
	r.begin(1)
	if code := r.code(1, 30*time.Second); code != contract.ExitUnfit {
		t.Errorf("a member without a coordinator ended with %d, want %d", code, contract.ExitUnfit)
	}
}

// TestStrangers: whoever reaches the port of the crew, and says what no member says, disturbs nobody.
func TestStrangers(t *testing.T) {
	r := newRig(t, contract.Plan{Workers: 2, Checkpoints: &contract.Checkpoints{Complete: complete}}, demo(t, "--steps=100", "--step=20ms", "--every=10")...)
	r.begin(r.all()...)
	r.until("all ranks run", 30*time.Second, func(s contract.State) bool { return s.Phase == contract.PhaseRunning && s.Progress.Step > 0 })
	for _, words := range []string{
		"", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00", strings.Repeat("x", 1<<20), "{", "null\n",
		`{"kind":"hello","run":1,"index":7,"attempt":-1,"greeting":{"ledger":{"attempt":-1}}}` + "\n",
		`{"kind":"hello","run":2,"index":1,"attempt":-1,"greeting":{"ledger":{"attempt":-1}}}` + "\n",
		`{"kind":"fault","run":1,"index":1,"attempt":0,"fault":{"class":"User","rank":1,"message":"lie"}}` + "\n",
		`{"kind":"done","run":1,"index":1,"attempt":0}` + "\n",
		`{"kind":"beat","run":1,"index":1,"attempt":0,"sequence":1}` + "\n",
	} {
		conn, err := net.Dial("tcp", net.JoinHostPort(r.net+"1", strconv.Itoa(contract.Port)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(words)) // The coordinator may hang up at once.
		defer func() { _ = conn.Close() }()
	}
	for _, index := range r.all() {
		if code := r.code(index, 60*time.Second); code != contract.ExitDone {
			t.Errorf("pod %d ended with %d", index, code)
		}
	}
	r.exact()
	if s := r.last(); s.Restarts != 0 || s.LastFault != nil {
		t.Errorf("nothing should have started again: %+v, %+v", s, s.LastFault)
	}
}

// noisy prints what programs print: bars that are drawn over each other, colours, a line of three megabytes, and bytes that are no text.
const noisy = `printf 'Step 1/4 \r\033[32mStep 2/4\033[0m\r'
head -c 3000000 /dev/zero | tr '\0' x
printf '\n\377\376half \303\nno end of step=3 loss=0.5'
sleep 1
printf '\n\342\202'
sleep 0.2
printf '\254 step=4 of=4 loss=0.25\n'
sleep 1`

// TestOutput passes through as it is, and is understood.
func TestOutput(t *testing.T) {
	for name, processes := range map[string]int{"Alone": 1, "Shared": 2} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, contract.Plan{Workers: 1, Processes: processes}, "/bin/sh", "-c", noisy)
			r.begin(0)
			if code := r.code(0, 60*time.Second); code != contract.ExitDone {
				t.Fatalf("the pod ended with %d", code)
			}
			if s := r.last(); s.Progress.Step != 4 || s.Progress.Of != 4 || s.Progress.Loss != "0.25" {
				t.Errorf("progress %+v, want step 4 of 4 with the loss 0.25", s.Progress)
			}
			want := "Step 1/4 \r\x1b[32mStep 2/4\x1b[0m\r" + strings.Repeat("x", 3000000) + "\n\xff\xfehalf \xc3\nno end of step=3 loss=0.5\n\xe2\x82\xac step=4 of=4 loss=0.25\n"
			out := r.pods[0].out.String()
			if processes == 1 {
				if out != want {
					t.Errorf("the output has %d bytes and should be the %d of the program", len(out), len(want))
				}
				return
			}
			// Ranks share the output by lines of at most 64 KiB.
			got := map[string]string{}
			for line := range strings.Lines(out) {
				if len(line) > 65<<10 {
					t.Fatalf("a line of %d bytes", len(line))
				}
				rank, text, ok := strings.Cut(line, "] ")
				if !ok {
					t.Fatalf("a line without the name of its rank: %.60q", line)
				}
				got[rank] += strings.TrimSuffix(text, "\n")
			}
			for _, rank := range []string{"[rank 0", "[rank 1"} {
				if got[rank] != strings.ReplaceAll(want, "\n", "") {
					t.Errorf("%s] has %d bytes, want %d", rank, len(got[rank]), len(want))
				}
			}
		})
	}
}
