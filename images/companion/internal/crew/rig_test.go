// SPDX-License-Identifier: Apache-2.0

package crew_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	contract "github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/process"
	"github.com/capstan-dev/capstan/test/output"
)

// role is the variable by which this binary plays something other than the test.
const role = "CREW_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "companion":
		os.Exit(companion())
	default:
		os.Exit(m.Run())
	}
}

// companion is the program as in a pod, but for addresses of its own.
func companion() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	dir, net := os.Getenv("RIG_DIR"), os.Getenv("RIG_NET")
	index, err := strconv.Atoi(os.Getenv("RIG_INDEX"))
	if err != nil {
		panic(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	if err != nil {
		panic(err)
	}
	plan, err := contract.ParsePlan(raw)
	if err != nil {
		panic(err)
	}
	waitLimit, err := time.ParseDuration(os.Getenv("RIG_PATIENCE"))
	if err != nil {
		panic(err)
	}
	host := func(index int) string { return net + strconv.Itoa(index+1) }
	code, words := crew.Run(ctx, crew.Config{
		Plan: plan, Index: index, Command: os.Args[1:], Host: host, Address: host(index), Scratch: os.Getenv("RIG_SCRATCH"), Out: os.Stdout,
		Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)), Memory: process.Memory{Root: filepath.Join(dir, "cgroup")}, WaitLimit: waitLimit,
	})
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("words-%d", index)), words, 0o600); err != nil {
		panic(err)
	}
	return code
}

// A rig is a run whose pods are processes on loopback addresses.
type rig struct {
	t         *testing.T
	dir       string
	net       string
	plan      contract.Plan
	command   []string
	waitLimit time.Duration
	pods      map[int]*pod
}

type pod struct {
	cmd  *exec.Cmd
	out  *output.Buffer
	log  *output.Buffer
	done chan struct{}
}

var rigs atomic.Int32

// newRig of a plan. Folders and names of the plan are the rig's.
func newRig(t *testing.T, plan contract.Plan, command ...string) *rig {
	t.Helper()
	r := &rig{
		t: t, dir: t.TempDir(), command: command, pods: map[int]*pod{}, waitLimit: time.Minute,
		net: fmt.Sprintf("127.%d.%d.", 64+os.Getpid()%150, 1+rigs.Add(1)),
	}
	plan.Training, plan.Run = "fraud", 1
	if plan.Checkpoints != nil {
		plan.Checkpoints.Dir = filepath.Join(r.dir, "checkpoints")
		r.mkdir("checkpoints")
	}
	r.mkdir("cgroup")
	r.write("cgroup/memory.events", "oom_kill 0\n")
	r.write("cgroup/memory.max", strconv.Itoa(512<<20))
	raw, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	r.plan = plan
	r.write("plan.json", string(raw))
	t.Cleanup(func() {
		for index, p := range r.pods {
			_ = p.cmd.Process.Kill()
			<-p.done
			if t.Failed() {
				t.Logf("log of pod %d:\n%s", index, p.log)
				t.Logf("output of pod %d:\n%.3000s", index, p.out)
			}
		}
	})
	return r
}

func (r *rig) mkdir(name string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(r.dir, name), 0o750); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) write(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// begin pods with these indexes, again if there were some.
func (r *rig) begin(indexes ...int) {
	r.t.Helper()
	for _, index := range indexes {
		scratch := fmt.Sprintf("scratch-%d", index)
		r.mkdir(scratch)
		p := &pod{out: &output.Buffer{}, log: &output.Buffer{}, done: make(chan struct{})}
		p.cmd = exec.Command(os.Args[0], r.command...)
		p.cmd.Env = append(os.Environ(), role+"=companion", "RIG_DIR="+r.dir, "RIG_NET="+r.net, "RIG_INDEX="+strconv.Itoa(index),
			"RIG_SCRATCH="+filepath.Join(r.dir, scratch), "RIG_PATIENCE="+r.waitLimit.String())
		p.cmd.Stdout, p.cmd.Stderr = p.out, p.log
		// Ranks that outlive their companion would keep these pipes.
		p.cmd.WaitDelay = 5 * time.Second
		if err := p.cmd.Start(); err != nil {
			r.t.Fatal(err)
		}
		go func() {
			_ = p.cmd.Wait()
			close(p.done)
		}()
		r.pods[index] = p
	}
}

// all indexes of the plan.
func (r *rig) all() []int {
	var all []int
	for index := range r.plan.Size() {
		all = append(all, index)
	}
	return all
}

// kill a pod.
func (r *rig) kill(index int) {
	r.t.Helper()
	_ = r.pods[index].cmd.Process.Kill()
	<-r.pods[index].done
}

// code with which a pod ends.
func (r *rig) code(index int, within time.Duration) int {
	r.t.Helper()
	select {
	case <-r.pods[index].done:
		return r.pods[index].cmd.ProcessState.ExitCode()
	case <-time.After(within):
		r.t.Fatalf("pod %d has not ended after %s", index, within)
		return -1
	}
}

// state as the coordinator tells it, and whether it answers.
func (r *rig) state() (contract.State, bool) {
	client := http.Client{Timeout: time.Second}
	resp, err := client.Get(fmt.Sprintf("http://%s1:%d%s", r.net, contract.StatePort, contract.StatePath))
	if err != nil {
		return contract.State{}, false
	}
	defer func() { _ = resp.Body.Close() }()
	var s contract.State
	return s, json.NewDecoder(resp.Body).Decode(&s) == nil
}

// until a state is reached.
func (r *rig) until(what string, within time.Duration, reached func(contract.State) bool) contract.State {
	r.t.Helper()
	limit := time.Now().Add(within)
	for {
		s, ok := r.state()
		if ok && reached(s) {
			return s
		}
		if time.Now().After(limit) {
			r.t.Fatalf("not reached within %s: %s. State: %+v", within, what, s)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// last words of index 0.
func (r *rig) last() contract.State {
	r.t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.dir, "words-0"))
	if err != nil {
		r.t.Fatal(err)
	}
	var s contract.State
	if err := json.Unmarshal(raw, &s); err != nil {
		r.t.Fatalf("the last words %q are no state: %v", raw, err)
	}
	return s
}

// A said is a line of a companion's log.
type said struct {
	Time     time.Time `json:"time"`
	Msg      string    `json:"msg"`
	Attempt  int       `json:"attempt"`
	Class    string    `json:"class"`
	How      string    `json:"how"`
	Resume   string    `json:"resumeFrom"`
	Pod      int       `json:"pod"`
	GroupRnk int       `json:"groupRank"`
}

// log lines of a pod.
func (r *rig) log(index int) []said {
	r.t.Helper()
	var all []said
	scanner := bufio.NewScanner(strings.NewReader(r.pods[index].log.String()))
	for scanner.Scan() {
		var s said
		if json.Unmarshal(scanner.Bytes(), &s) == nil {
			all = append(all, s)
		}
	}
	return all
}

// at is when the last of these pods said something about an attempt.
func (r *rig) at(msg string, attempt int, indexes ...int) time.Time {
	r.t.Helper()
	var last time.Time
	for _, index := range indexes {
		found := false
		for _, s := range r.log(index) {
			if s.Msg == msg && s.Attempt == attempt {
				found = true
				if s.Time.After(last) {
					last = s.Time
				}
			}
		}
		if !found {
			r.t.Fatalf("pod %d never said %q of attempt %d", index, msg, attempt)
		}
	}
	return last
}

// first time that the coordinator said something about an attempt.
func (r *rig) first(msg string, attempt int) time.Time {
	r.t.Helper()
	for _, s := range r.log(0) {
		if s.Msg == msg && s.Attempt == attempt {
			return s.Time
		}
	}
	r.t.Fatalf("the coordinator never said %q of attempt %d", msg, attempt)
	return time.Time{}
}

// training is the demo's trainer, built once.
var training = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "crew-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "demo-training")
	out, err := exec.Command("go", "build", "-o", file, "github.com/capstan-dev/capstan/images/demo-training").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
})

// demo is the command of the demo's trainer.
func demo(t *testing.T, args ...string) []string {
	t.Helper()
	file, err := training()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{file}, args...)
}
