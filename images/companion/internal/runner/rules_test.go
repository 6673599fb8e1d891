// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/runner"
)

func TestJudge(t *testing.T) {
	retry := runner.Retry{
		Attempts: 3, ResetSeconds: 3600, Backoff: runner.Backoff{FromSeconds: 10, ToSeconds: 15, Factor: 2},
		Rules: []runner.Rule{
			{ExitCodes: []int{3}, Do: runner.ActionFail},
			{Pattern: "Table .* not found", Do: runner.ActionFail},
			{Class: runner.ClassOutOfMemory, Do: runner.ActionMemory},
			{Class: runner.ClassInfrastructure, Do: runner.ActionRetry, Attempts: 5},
			{Pattern: "SlowDown", ExitCodes: []int{9}, Do: runner.ActionRetry, Backoff: &runner.Backoff{FromSeconds: 300, ToSeconds: 3600, Factor: 2}},
		},
	}
	type failure struct {
		code  int
		class runner.Class
		lines []string
		ran   time.Duration
	}
	user := failure{code: 1, class: runner.ClassUser}
	tests := map[string]struct {
		reason   string
		failures []failure
		want     []string
	}{
		"Unmatched":      {"Failures without a rule count together, and the third is the last.", []failure{user, user, user}, []string{"Retry 10s", "Retry 15s", "Fail 0s"}},
		"ExitCode":       {"A rule ends the run at once.", []failure{{code: 3, class: runner.ClassUser}}, []string{"Fail 0s"}},
		"Pattern":        {"A line decides, whatever came after it.", []failure{{code: 1, lines: []string{"x", "Table t not found", "SlowDown"}}}, []string{"Fail 0s"}},
		"OldestLine":     {"The line nearest to the cause counts: the later one is not the reason.", []failure{{code: 9, lines: []string{"SlowDown", "Table t not found"}}}, []string{"Retry 5m0s"}},
		"AllConditions":  {"A rule with two conditions needs both.", []failure{{code: 1, class: runner.ClassUser, lines: []string{"SlowDown"}}}, []string{"Retry 10s"}},
		"Memory":         {"More memory is another Job's.", []failure{{code: -1, class: runner.ClassOutOfMemory}}, []string{"RetryWithMemory 0s"}},
		"OwnBudget":      {"A rule with attempts of its own takes none of the others.", []failure{{code: 1, class: runner.ClassInfrastructure}, user, {code: 1, class: runner.ClassInfrastructure}, user}, []string{"Retry 10s", "Retry 10s", "Retry 15s", "Retry 15s"}},
		"Reset":          {"After it ran well for long, failures before count no more.", []failure{user, user, {code: 1, class: runner.ClassUser, ran: time.Hour}}, []string{"Retry 10s", "Retry 15s", "Retry 10s"}},
		"OtherAttempt":   {"What an earlier attempt wrote is no reason.", []failure{{code: 1, lines: []string{"Table t not found"}}, user}, []string{"Fail 0s", "Retry 10s"}},
		"UnknownPattern": {"A line that no rule knows changes nothing.", []failure{{code: 1, class: runner.ClassUser, lines: []string{"warning"}}}, []string{"Retry 10s"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := newRules(retry, func() float64 { return 0.5 })
			if err != nil {
				t.Fatal(err)
			}
			now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
			var got []string
			for _, f := range tc.failures {
				r.begin()
				for _, line := range f.lines {
					r.line(line, now)
				}
				v := r.judge(runner.Failure{Class: f.class, ExitCode: f.code}, f.ran, now)
				if v.action == runner.ActionFail && v.why == "" {
					t.Error("the end has no reason")
				}
				got = append(got, string(v.action)+" "+v.pause.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOldLines(t *testing.T) {
	r, err := newRules(runner.Retry{Rules: []runner.Rule{{Pattern: "429", Do: runner.ActionFail}}}, func() float64 { return 0.5 })
	if err != nil {
		t.Fatal(err)
	}
	r.retry = withDefaults(runner.Plan{Retry: r.retry}).Retry
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	r.line("429", now)
	if v := r.judge(runner.Failure{ExitCode: 1}, 2*time.Hour, now.Add(2*time.Hour)); v.action != runner.ActionRetry {
		t.Errorf("a line of two hours ago decides: %+v", v)
	}
}

func TestJitter(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 8 * time.Second, 0.5: 10 * time.Second, 1: 12 * time.Second} {
		r, err := newRules(withDefaults(runner.Plan{}).Retry, func() float64 { return random })
		if err != nil {
			t.Fatal(err)
		}
		if v := r.judge(runner.Failure{ExitCode: 1}, 0, time.Time{}); v.pause != want {
			t.Errorf("random %g: pause %s, want %s", random, v.pause, want)
		}
	}
}

func TestPatternThatCannotBeUsed(t *testing.T) {
	_, err := newRules(runner.Retry{Rules: []runner.Rule{{Pattern: "("}}}, nil)
	if err == nil || !strings.Contains(err.Error(), `"("`) {
		t.Errorf("error %v, want the pattern", err)
	}
}

func TestPlace(t *testing.T) {
	tests := map[string]struct {
		reason string
		plan   runner.Plan
		place  place
		want   map[string]string
	}{
		"Scheduled": {
			"A CronJob puts the minutes at the end of the name.",
			runner.Plan{Pipeline: "daily-features", Domain: "daily-features.shop.svc"},
			place{job: "daily-features-29394060", host: "daily-features-29394060-2"},
			map[string]string{
				runner.EnvRun: "29394060", runner.EnvScheduledAt: "2025-11-20T13:00:00Z",
				runner.EnvLeader: "daily-features-29394060-0.daily-features.shop.svc", runner.EnvHost: "daily-features-29394060-2.daily-features.shop.svc",
			},
		},
		"MoreMemory": {
			"Another Job of the same time.",
			runner.Plan{Pipeline: "daily"},
			place{job: "daily-29394060-m1", host: "h"},
			map[string]string{runner.EnvRun: "29394060", runner.EnvScheduledAt: "2025-11-20T13:00:00Z", runner.EnvHost: "h"},
		},
		"ByID": {
			"The plan has the id.",
			runner.Plan{Pipeline: "daily", Run: "2026-11-20"},
			place{job: "daily-run-2026-11-20"},
			map[string]string{runner.EnvRun: "2026-11-20", runner.EnvScheduledAt: ""},
		},
		"Other": {"A name of somebody else has no time.", runner.Plan{Pipeline: "daily"}, place{job: "other-1"}, map[string]string{runner.EnvRun: "", runner.EnvScheduledAt: ""}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			environment := tc.place.environment(tc.plan, 3)
			for variable, want := range tc.want {
				if got, _ := lookup(environment, variable); got != want {
					t.Errorf("%s: %s is %q, want %q", tc.reason, variable, got, want)
				}
			}
		})
	}
}

func TestExpand(t *testing.T) {
	environment := []string{"A=1", "B=two", "A=3"}
	for text, want := range map[string]string{
		"x": "x", "$(A)": "3", "spark://$(B):7077": "spark://two:7077", "$$(A)": "$(A)", "$(C)": "$(C)", "$": "$", "a$b": "a$b", "$(A": "$(A", "$()": "$()", "": "",
	} {
		if got := expand(text, environment); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("program ended with exit code 1", strings.Repeat("line\n", 1000))
	f.Add(strings.Repeat("\x00", 5000), strings.Repeat("\xff\x01é", 5000))
	f.Fuzz(func(t *testing.T, words, lines string) {
		raw := message(runner.State{Phase: runner.PhaseFailed, LastFailure: &runner.Failure{Message: words, Lines: lines}})
		if len(raw) > runner.MaxMessage {
			t.Fatalf("%d bytes", len(raw))
		}
	})
}
