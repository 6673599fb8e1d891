// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/images/companion/internal/process"
	"github.com/capstan-dev/capstan/test/output"
)

// keeper of this process, which has one only.
var keeper = sync.OnceValues(process.NewKeeper)

// quick retries, without a time between.
var quick = runner.Retry{Attempts: 3, Backoff: runner.Backoff{Factor: 1, ToSeconds: 1}}

// config of a companion whose program is a script.
func config(t *testing.T, script string, retry runner.Retry) (Config, *output.Buffer) {
	t.Helper()
	group := t.TempDir()
	if err := os.WriteFile(filepath.Join(group, "memory.events"), []byte("oom_kill 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := keeper()
	if err != nil {
		t.Fatal(err)
	}
	out := &output.Buffer{}
	return Config{
		Plan: runner.Plan{Pipeline: "daily", GraceSeconds: 1, Retry: retry, Roles: []runner.Role{{Name: "Program", Main: runner.Process{Name: "program", Args: true}}}},
		Job:  "daily-run-1", Host: "daily-run-1-0", Args: []string{"sh", "-c", script}, Address: free(t),
		Out: out, Log: slog.New(slog.DiscardHandler), Memory: process.Memory{Root: group}, Keeper: k,
	}, out
}

// free address of this machine.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// outcome of a run.
func outcome(t *testing.T, ctx context.Context, c Config) (int, runner.State) {
	t.Helper()
	code, words := Run(ctx, c)
	var s runner.State
	if err := json.Unmarshal(words, &s); err != nil {
		t.Fatalf("the last words are no state: %v: %s", err, words)
	}
	return code, s
}

func TestRun(t *testing.T) {
	tests := map[string]struct {
		reason   string
		script   string
		retry    runner.Retry
		code     int
		phase    runner.Phase
		attempts int
		class    runner.Class
		says     string
	}{
		"Succeeds":      {"It ends with 0.", `echo done`, quick, runner.ExitDone, runner.PhaseSucceeded, 1, "", ""},
		"FailsForGood":  {"The third failure is the last, and its last line is told.", `echo unknown argument --days >&2; exit 2`, quick, runner.ExitFailed, runner.PhaseFailed, 3, runner.ClassUser, "program ended with exit code 2: unknown argument --days (it failed 3 times in a row, and no other attempt is allowed)"},
		"Recovers":      {"The second attempt succeeds.", `[ "$CAPSTAN_ATTEMPT" = 1 ]`, quick, runner.ExitDone, runner.PhaseSucceeded, 2, runner.ClassUser, "exit code 1"},
		"Rule":          {"A rule ends it at the first failure.", `exit 3`, runner.Retry{Rules: []runner.Rule{{ExitCodes: []int{3}, Do: runner.ActionFail}}}, runner.ExitFailed, runner.PhaseFailed, 1, runner.ClassUser, "rule 1 of spec.retry.rules ends the run"},
		"Pattern":       {"The line of the pattern is the cause, not the last one.", `echo Table or view not found: x; echo Traceback; exit 1`, runner.Retry{Rules: []runner.Rule{{Pattern: "Table or view not found", Do: runner.ActionFail}}}, runner.ExitFailed, runner.PhaseFailed, 1, runner.ClassUser, "exit code 1: Table or view not found: x"},
		"Memory":        {"A program that says so needs more memory.", `echo java.lang.OutOfMemoryError: Java heap space; exit 1`, runner.Retry{Rules: []runner.Rule{{Class: runner.ClassOutOfMemory, Do: runner.ActionMemory}}}, runner.ExitMemory, runner.PhaseFailed, 1, runner.ClassOutOfMemory, "Java heap space"},
		"MemoryThenNet": {"Others lose what ends for lack of memory.", `echo java.lang.OutOfMemoryError: Java heap space; echo java.io.IOException: Connection reset by peer; exit 1`, runner.Retry{Rules: []runner.Rule{{Class: runner.ClassOutOfMemory, Do: runner.ActionMemory}}}, runner.ExitMemory, runner.PhaseFailed, 1, runner.ClassOutOfMemory, "reset by peer"},
		"NoProgram":     {"A program that is not there is a mistake of the user.", `exec /no/such/program`, runner.Retry{Attempts: 1}, runner.ExitFailed, runner.PhaseFailed, 1, runner.ClassUser, "no other attempt is allowed"},
		"Megabytes":     {"A line of megabytes, half characters and a progress bar pass through.", `head -c 3000000 /dev/zero | tr '\0' x; printf '\n10%%\r20%%\r\303'; exit 1`, runner.Retry{Attempts: 1}, runner.ExitFailed, runner.PhaseFailed, 1, runner.ClassUser, "exit code 1"},
		"Signal":        {"Somebody else killed it.", `kill -TERM $$`, runner.Retry{Attempts: 1}, runner.ExitFailed, runner.PhaseFailed, 1, runner.ClassInfrastructure, `signal "terminated" from elsewhere`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, _ := config(t, tc.script, tc.retry)
			code, s := outcome(t, t.Context(), c)
			if code != tc.code || s.Phase != tc.phase || s.Attempts != tc.attempts {
				t.Errorf("%s: code %d, phase %s, %d attempts; want %d, %s, %d: %+v", tc.reason, code, s.Phase, s.Attempts, tc.code, tc.phase, tc.attempts, s.LastFailure)
			}
			f := runner.Failure{}
			if s.LastFailure != nil {
				f = *s.LastFailure
			}
			if f.Class != tc.class || !strings.Contains(f.Message, tc.says) {
				t.Errorf("%s: failure %+v, want class %q and %q", tc.reason, f, tc.class, tc.says)
			}
		})
	}
}

func TestPodHasToGo(t *testing.T) {
	tests := map[string]struct {
		reason, script string
		least, most    time.Duration
	}{
		"Obeys":   {"It ends at once.", `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done`, 0, time.Second},
		"Ignores": {"It is killed after the grace period.", `trap '' TERM; echo up; while :; do sleep 0.05; done`, time.Second, 3 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, out := config(t, tc.script, quick)
			ctx, leave := context.WithCancel(t.Context())
			var left time.Time
			go func() {
				for !strings.Contains(out.String(), "up") {
					time.Sleep(5 * time.Millisecond)
				}
				left = time.Now()
				leave()
			}()
			code, s := outcome(t, ctx, c)
			if code != runner.ExitEnded || s.Phase != runner.PhaseEnding {
				t.Errorf("code %d, phase %s", code, s.Phase)
			}
			if took := time.Since(left); took < tc.least || took > tc.most+5*time.Second {
				t.Errorf("%s: it took %s", tc.reason, took)
			}
		})
	}
}

// TestDriver: the process beside the main one stays while the main one starts again, and all end together.
func TestDriver(t *testing.T) {
	dir := t.TempDir()
	c, out := config(t, "", quick)
	c.Plan.Domain = "daily.shop.svc"
	c.Plan.Roles = []runner.Role{
		{
			Name: "Driver", Indexes: []int{0}, Beside: []runner.Process{{Name: "master", Command: []string{"sh", "-c", `echo $$ >> ` + dir + `/master; exec sleep 60`}}},
			Main: runner.Process{Name: "driver", Command: []string{"sh", "-c", `until [ -s ` + dir + `/master ]; do sleep 0.01; done; (setsid sleep 60 &); echo $0 $1; [ $CAPSTAN_ATTEMPT = 2 ]`, "spark://$(CAPSTAN_LEADER):7077"}, Args: true},
		},
		{Name: "Worker", Main: runner.Process{Name: "worker", Command: []string{"true"}}, Serves: true},
	}
	c.Args = []string{"features.py"}
	began := time.Now()
	code, s := outcome(t, t.Context(), c)
	if code != runner.ExitDone || s.Role != "Driver" || s.Attempts != 3 {
		t.Errorf("code %d, state %+v", code, s)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s: the process beside did not end", took)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "master"))
	if err != nil || strings.Count(string(raw), "\n") != 1 {
		t.Errorf("the master started %d times: %v", strings.Count(string(raw), "\n"), err)
	}
	if want := "[driver] spark://daily-run-1-0.daily.shop.svc:7077 features.py\n"; strings.Count(out.String(), want) != 3 {
		t.Errorf("output %q, want three times %q", out.String(), want)
	}
	c.Index, c.Plan.Retry.Attempts = 1, 2
	if code, s := outcome(t, t.Context(), c); code != runner.ExitUnfit || s.Role != "Worker" || s.LastFailure == nil || s.LastFailure.Class != runner.ClassInfrastructure {
		t.Errorf("a worker that ends well: code %d, state %+v", code, s)
	}
}

func TestState(t *testing.T) {
	c, _ := config(t, `[ "$CAPSTAN_ATTEMPT" = 1 ] && exec sleep 60; echo no; exit 4`, quick)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Run(ctx, c)
	}()
	defer func() {
		leave()
		<-ended
	}()
	for limit := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		s, err := ask(t, c.Address)
		if err == nil && s.Attempts == 2 && s.Phase == runner.PhaseRunning && s.LastFailure != nil && s.LastFailure.ExitCode == 4 && s.LastFailure.Lines == "no" {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("state %+v, error %v", s, err)
		}
	}
}

func ask(t *testing.T, address string) (s runner.State, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+runner.StatePath, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	return s, json.NewDecoder(res.Body).Decode(&s)
}
