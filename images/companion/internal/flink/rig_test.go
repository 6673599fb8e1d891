// SPDX-License-Identifier: Apache-2.0

package flink_test

import (
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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	contract "github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/images/companion/internal/flink"
	"github.com/capstan-dev/capstan/images/demo-flink/double"
	"github.com/capstan-dev/capstan/test/output"
)

// role is the variable by which this binary plays something other than the test.
const role = "FLINK_TEST_ROLE"

func TestMain(m *testing.M) {
	switch run := os.Getenv(role); run {
	case "":
		os.Exit(m.Run())
	case "java":
		os.Exit(double.Main(os.Args[1:], os.Stdout))
	default:
		os.Exit(companion(run))
	}
}

// doubled is a rig with a double of Flink, whose job has arguments.
func doubled(t *testing.T, plan contract.Plan, args ...string) *rig {
	t.Helper()
	plan.Args, plan.CheckpointSeconds = append([]string{"--pause=5ms"}, args...), 1
	r := newRig(t, plan)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r.home, r.java = t.TempDir(), filepath.Join(t.TempDir(), "java")
	script := fmt.Sprintf("#!/bin/sh\n%s=java exec %s \"$@\"\n", role, self)
	if err := os.WriteFile(r.java, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return r
}

// companion is the program as in a pod, but for addresses of its own.
func companion(run string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	raw, err := os.ReadFile(os.Getenv("RIG_PLAN"))
	if err != nil {
		panic(err)
	}
	plan, err := contract.ParsePlan(raw)
	if err != nil {
		panic(err)
	}
	limit, _ := strconv.ParseInt(os.Getenv("RIG_LIMIT"), 10, 64)
	c := flink.Config{
		Plan: plan, Home: os.Getenv("RIG_HOME"), Java: os.Getenv("RIG_JAVA"), Scratch: os.Getenv("RIG_SCRATCH"), Host: os.Getenv("RIG_HOST"),
		Bind: os.Getenv("RIG_HOST"), Loopback: os.Getenv("RIG_HOST"), Limit: limit, Out: os.Stdout,
		Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	}
	if run == contract.RoleTaskManager {
		err = flink.RunTaskManager(ctx, c)
	} else {
		var words []byte
		words, err = flink.RunJobManager(ctx, c)
		_, _ = fmt.Fprintln(os.Stdout, "last words:", string(words))
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, "error:", err)
		return 1
	}
	return 0
}

// A rig is a stream whose pods are processes on loopback addresses.
type rig struct {
	t    *testing.T
	dir  string
	net  string
	home string
	java string
	// job and task are limits of memory, in bytes.
	job, task int64
	plan      contract.Plan
	pods      int
	all       []*pod
	// account is what all pods wrote.
	account *output.Buffer
}

type pod struct {
	name string
	cmd  *exec.Cmd
	log  *output.Buffer
	done chan struct{}
	// expected to end.
	expected atomic.Bool
}

var rigs atomic.Int32

func newRig(t *testing.T, plan contract.Plan) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), account: &output.Buffer{}}
	r.net = fmt.Sprintf("127.%d.%d.", 64+os.Getpid()%150, 1+rigs.Add(1))
	plan.Pipeline, plan.Revision, plan.JobID = "orders", max(plan.Revision, 1), "000000000000000000000000000000aa"
	plan.JobManager, plan.StateDir = r.net+"1", filepath.Join(r.dir, "state")
	r.plan = plan
	return r
}

// start a pod. The JobManager has the first address, and each TaskManager the next.
func (r *rig) start(run string) *pod {
	r.t.Helper()
	host, limit := r.net+"1", r.job
	if run == contract.RoleTaskManager {
		r.pods++
		host, limit = r.net+strconv.Itoa(1+r.pods), r.task
	}
	p := &pod{name: fmt.Sprintf("%s at %s", run, host), log: &output.Buffer{}, done: make(chan struct{})}
	scratch, file := r.t.TempDir(), filepath.Join(r.t.TempDir(), contract.PlanFile)
	raw, err := json.Marshal(r.plan)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		r.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	p.cmd = exec.Command(self)
	p.cmd.Env = append(os.Environ(), role+"="+run, "RIG_PLAN="+file, "RIG_HOME="+r.home, "RIG_JAVA="+r.java, "RIG_SCRATCH="+scratch, "RIG_HOST="+host,
		"RIG_LIMIT="+strconv.FormatInt(limit, 10))
	p.cmd.Stdout, p.cmd.Stderr = both{p.log, r.account}, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	r.all = append(r.all, p)
	r.t.Cleanup(func() {
		p.kill()
		if r.t.Failed() {
			r.t.Logf("the last of %s:\n%s", p.name, tail(p.log.String(), 6000))
		}
	})
	return p
}

type both [2]*output.Buffer

func (b both) Write(p []byte) (int, error) {
	_, _ = b[0].Write(p)
	return b[1].Write(p)
}

func tail(s string, most int) string { return s[max(0, len(s)-most):] }

// kill a pod as its node would if it lost power.
func (p *pod) kill() {
	p.expected.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
}

// terminate a pod, which has to end within a time.
func (r *rig) terminate(p *pod, within time.Duration) {
	r.t.Helper()
	p.expected.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(within):
		r.t.Fatalf("%s does not end", p.name)
	}
}

// state of the stream, or nil while nobody answers.
func (r *rig) state() *contract.State {
	res, err := (&http.Client{Timeout: time.Second}).Get("http://" + r.net + "1:" + strconv.Itoa(contract.StatePort) + contract.StatePath)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	var s contract.State
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
		r.t.Error(err)
	}
	return &s
}

// until the state is as it should be.
func (r *rig) until(what string, within time.Duration, is func(*contract.State) bool) *contract.State {
	r.t.Helper()
	limit := time.Now().Add(within)
	for {
		s := r.state()
		if s != nil && is(s) {
			return s
		}
		for _, p := range r.all {
			select {
			case <-p.done:
				if !p.expected.Load() {
					r.t.Fatalf("%s ended", p.name)
				}
			default:
			}
		}
		if time.Now().After(limit) {
			raw, _ := json.Marshal(s) //nolint:errchkjson // It is only shown.
			r.t.Fatalf("not within %s: %s; the state is %s", within, what, raw)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// running fails unless the stream runs and has completed a checkpoint since.
func (r *rig) running(within time.Duration) *contract.State {
	r.t.Helper()
	s := r.until("all tasks run", within, func(s *contract.State) bool { return s.Phase == contract.PhaseRunning })
	since := time.Now()
	return r.until("a checkpoint is completed after all tasks run", within, func(n *contract.State) bool {
		return n.Phase == contract.PhaseRunning && n.Checkpoint != nil && n.Checkpoint.At.After(since) && (s.Checkpoint == nil || n.Checkpoint.ID > s.Checkpoint.ID)
	})
}

// exact fails unless each number was counted once. Lines may come again after a restart, with the same count. It returns the highest number.
func (r *rig) exact() int {
	r.t.Helper()
	highest, lines := -1, 0
	whole := r.account.String()
	for line := range strings.Lines(whole[:strings.LastIndexByte(whole, '\n')+1]) {
		at := strings.Index(line, "account ")
		if at < 0 {
			continue
		}
		var n, count int
		if _, err := fmt.Sscanf(line[at:], "account %d %d", &n, &count); err != nil {
			continue
		}
		lines++
		if want := n/4 + 1; count != want {
			r.t.Errorf("number %d was counted as the %dth with its remainder, and is the %dth", n, count, want)
		}
		highest = max(highest, n)
	}
	if lines == 0 {
		r.t.Error("nothing was counted")
	}
	return highest
}
