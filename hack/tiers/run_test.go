// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/hack/internal/tiers"
)

// binary stands for a test binary behind what runs it: it writes the flags that select tests to $FLAGS, and reports each test that
// -test.run names as $RESULT_name says, where ONCE fails the first time only. All pass unless that says otherwise.
const binary = `#!/bin/sh
[ "$1 $2" = "exec --" ] || exit 9
status=0
for flag; do
  case $flag in
  -test.run=*) echo "$flag" >>"$FLAGS"; names=${flag#*=} ;;
  -test.*=*) echo "$flag" >>"$FLAGS" ;;
  esac
done
for name in $(echo "$names" | tr -d '^()$' | tr '|' ' '); do
  eval "result=\${RESULT_$name:-PASS}"
  [ "$result" != NONE ] || continue
  if [ "$result" = ONCE ]; then
    result=PASS
    [ -e "$FLAGS.$name" ] || { result=FAIL; : >"$FLAGS.$name"; }
  fi
  echo "=== RUN   $name"
  [ "$result" != ENDS ] || exit 2
  [ "$result" != FAIL ] || { status=1; echo "    a_test.go:7: $name was lost"; echo "        in its second line"; }
  echo "    --- FAIL: $name/Part (1.00s)"
  echo "--- $result: $name (2.50s)"
done
exit $status
`

var day = time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)

func catalogue() *tiers.Catalogue {
	return &tiers.Catalogue{
		SpareMinutes: 20,
		Clusters:     []tiers.Cluster{{Nodes: 1, SetupMinutes: 2, Parallel: 4}, {Nodes: 3, SetupMinutes: 4, Parallel: 1}},
		Tests: []tiers.Test{
			{Name: "TestChange", Nodes: 1, Tier: tiers.Change, Minutes: 1},
			{Name: "TestSlow", Nodes: 1, Tier: tiers.Rotation, Minutes: 8},
			{Name: "TestShort", Nodes: 1, Tier: tiers.Rotation, Minutes: 4},
			{Name: "TestThree", Nodes: 3, Tier: tiers.Change, Minutes: 12},
			{Name: "TestSlowThree", Nodes: 3, Tier: tiers.Rotation, Minutes: 8},
		},
	}
}

// started is a CI run that began so many minutes ago, and has 70.
func started(t *testing.T, minutes int) (*project, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	return &project{
		Catalogue: catalogue(),
		options: options{
			Ledger: filepath.Join(t.TempDir(), "runs.tsv"), Report: t.TempDir(),
			Started: day.Add(-time.Duration(minutes) * time.Minute).Unix(), Budget: 70 * time.Minute, Limit: 80 * time.Minute,
		},
		root: t.TempDir(), out: out, now: func() time.Time { return day },
	}, out
}

func TestRun(t *testing.T) {
	cases := map[string]struct {
		reason  string
		nodes   int
		only    string
		night   bool
		minutes int
		results map[string]string
		ledger  tiers.Ledger
		// flags are those of all processes, one after the other.
		flags []string
		want  map[string]string
		err   string
		slow  bool
		// flaky is the test that the closing lines name.
		flaky string
	}{
		"TimeLeft": {
			reason: "what fits runs after the tests of the change, and the next cluster keeps its twenty minutes", nodes: 1, minutes: 30,
			flags: []string{
				"-test.timeout=3h0m0s", "-test.parallel=4", "-test.run=^(TestChange)$",
				"-test.timeout=30m0s", "-test.parallel=4", "-test.run=^(TestSlow|TestShort)$",
			},
			ledger: tiers.Ledger{pass("TestSlow", 3), pass("TestShort", 2), pass("TestSlowThree", 1)},
			want:   map[string]string{"TestChange": "change passed", "TestSlow": "rotation passed", "TestShort": "rotation passed"},
		},
		"NextClusterFirst": {
			reason: "a test of the next cluster that waits for longer keeps its time", nodes: 1, minutes: 34,
			ledger: tiers.Ledger{pass("TestSlowThree", 3), pass("TestSlow", 2), pass("TestShort", 1)},
			flags: []string{
				"-test.timeout=3h0m0s", "-test.parallel=4", "-test.run=^(TestChange)$",
				"-test.timeout=26m0s", "-test.parallel=4", "-test.run=^(TestShort)$",
			},
			want: map[string]string{"TestChange": "change passed", "TestShort": "rotation passed"},
		},
		"LastCluster": {
			reason: "on the last cluster tests of the one before are gone", nodes: 3, minutes: 50,
			flags: []string{
				"-test.timeout=3h0m0s", "-test.parallel=1", "-test.run=^(TestThree)$",
				"-test.timeout=30m0s", "-test.parallel=1", "-test.run=^(TestSlowThree)$",
			},
			want: map[string]string{"TestThree": "change passed", "TestSlowThree": "rotation passed"},
		},
		"NoTimeLeft": {
			reason: "after the budget no slow test starts", nodes: 3, minutes: 75,
			flags: []string{"-test.timeout=3h0m0s", "-test.parallel=1", "-test.run=^(TestThree)$"},
			want:  map[string]string{"TestThree": "change passed"},
		},
		"ChangeFails": {
			reason: "a test that fails twice fails the run, and nothing slow runs after it", nodes: 1, minutes: 10, results: map[string]string{"TestChange": "FAIL"},
			flags: []string{
				"-test.timeout=3h0m0s", "-test.parallel=4", "-test.run=^(TestChange)$",
				"-test.timeout=50m0s", "-test.parallel=4", "-test.run=^(TestChange)$",
			},
			want: map[string]string{"TestChange": "change failed"}, err: "TestChange failed",
		},
		"ChangeFailsOnce": {
			reason: "a test that passes the second time stops no change, and is named in the end", nodes: 3, minutes: 75,
			results: map[string]string{"TestThree": "ONCE"},
			flags: []string{
				"-test.timeout=3h0m0s", "-test.parallel=1", "-test.run=^(TestThree)$",
				"-test.timeout=5m0s", "-test.parallel=1", "-test.run=^(TestThree)$",
			},
			want: map[string]string{"TestThree": "change passed"}, flaky: "TestThree",
		},
		"ChangeFailsLate": {
			reason: "when CI has to end, nothing is repeated", nodes: 3, minutes: 80, results: map[string]string{"TestThree": "ONCE"},
			flags: []string{"-test.timeout=3h0m0s", "-test.parallel=1", "-test.run=^(TestThree)$"},
			want:  map[string]string{"TestThree": "change failed"}, err: "TestThree failed",
		},
		"NamedFails": {
			reason: "who names a test wants to see it fail", nodes: 1, only: "TestSlow", results: map[string]string{"TestSlow": "ONCE"},
			flags: []string{"-test.timeout=3h0m0s", "-test.parallel=4", "-test.run=TestSlow", "-test.skip=^(TestSlowThree)$"},
			want:  map[string]string{"TestSlow": "named failed"}, err: "TestSlow failed",
		},
		"SlowFails": {
			reason: "a slow test that fails has another status than one of the change", nodes: 3, minutes: 10, results: map[string]string{"TestSlowThree": "FAIL"},
			flags: []string{
				"-test.timeout=3h0m0s", "-test.parallel=1", "-test.run=^(TestThree)$",
				"-test.timeout=1h10m0s", "-test.parallel=1", "-test.run=^(TestSlowThree)$",
				"-test.timeout=1h10m0s", "-test.parallel=1", "-test.run=^(TestSlowThree)$",
			},
			want: map[string]string{"TestThree": "change passed", "TestSlowThree": "rotation failed"}, err: "TestSlowThree failed", slow: true,
		},
		"SlowFailsOnce": {
			reason: "a slow test that passes the second time stops no change", nodes: 3, minutes: 10, results: map[string]string{"TestSlowThree": "ONCE"},
			flags: []string{
				"-test.timeout=3h0m0s", "-test.parallel=1", "-test.run=^(TestThree)$",
				"-test.timeout=1h10m0s", "-test.parallel=1", "-test.run=^(TestSlowThree)$",
				"-test.timeout=1h10m0s", "-test.parallel=1", "-test.run=^(TestSlowThree)$",
			},
			want: map[string]string{"TestThree": "change passed", "TestSlowThree": "rotation passed"}, flaky: "TestSlowThree",
		},
		"SlowEnds": {
			reason: "a slow test whose process ended is not repeated", nodes: 3, minutes: 10, results: map[string]string{"TestSlowThree": "ENDS"},
			flags: []string{
				"-test.timeout=3h0m0s", "-test.parallel=1", "-test.run=^(TestThree)$",
				"-test.timeout=1h10m0s", "-test.parallel=1", "-test.run=^(TestSlowThree)$",
			},
			want: map[string]string{"TestThree": "change passed", "TestSlowThree": "rotation unfinished"}, err: "TestSlowThree unfinished", slow: true,
		},
		"Skipped": {
			reason: "in CI no test is skipped", nodes: 1, minutes: 10, results: map[string]string{"TestChange": "SKIP"},
			flags: []string{"-test.timeout=3h0m0s", "-test.parallel=4", "-test.run=^(TestChange)$"},
			want:  map[string]string{"TestChange": "change skipped"}, err: "TestChange skipped",
		},
		"NotStarted": {
			reason: "a test that nobody saw has not passed", nodes: 1, minutes: 10, results: map[string]string{"TestChange": "NONE"},
			flags: []string{"-test.timeout=3h0m0s", "-test.parallel=4", "-test.run=^(TestChange)$"},
			want:  map[string]string{}, err: "TestChange did not start",
		},
		"Unfinished": {
			reason: "nor has one whose process ended", nodes: 1, minutes: 10, results: map[string]string{"TestChange": "ENDS"},
			flags: []string{"-test.timeout=3h0m0s", "-test.parallel=4", "-test.run=^(TestChange)$"},
			want:  map[string]string{"TestChange": "change unfinished"}, err: "TestChange unfinished",
		},
		"Night": {
			reason: "at night all run, and nothing after", nodes: 1, night: true,
			flags: []string{"-test.timeout=3h0m0s", "-test.parallel=4", "-test.run=^(TestChange|TestSlow|TestShort)$"},
			want:  map[string]string{"TestChange": "nightly passed", "TestSlow": "nightly passed", "TestShort": "nightly passed"},
		},
		"Named": {
			reason: "what is named runs, whatever its tier, without that of the other cluster", nodes: 1, only: "TestSlow",
			flags: []string{"-test.timeout=3h0m0s", "-test.parallel=4", "-test.run=TestSlow", "-test.skip=^(TestSlowThree)$"},
			want:  map[string]string{"TestSlow": "named passed"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, out := started(t, tc.minutes)
			flags, program := filepath.Join(t.TempDir(), "flags"), filepath.Join(t.TempDir(), "binary")
			t.Setenv("FLAGS", flags)
			for test, result := range tc.results {
				t.Setenv("RESULT_"+test, result)
			}
			if err := os.WriteFile(program, []byte(binary), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := tiers.Record(p.Ledger, tc.ledger...); err != nil {
				t.Fatal(err)
			}
			c := &runCmd{selection: selection{Nodes: tc.nodes, Only: tc.only, Night: tc.night}, CI: true, Command: []string{"--", program, "exec", "--", "e2e.test"}}
			err := c.Run(t.Context(), p)
			if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || errors.Is(err, errSlow) != tc.slow) {
				t.Errorf("%s: want error %q, slow %t, got: %v\n%s", tc.reason, tc.err, tc.slow, err, out)
			}
			ran, err := os.ReadFile(flags)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.flags, strings.Fields(string(ran))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			got := map[string]string{}
			for _, r := range p.ledger()[len(tc.ledger):] {
				got[r.Test] = r.Occasion + " " + r.Result
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s, the ledger should hold (-want +got):\n%s", tc.reason, diff)
			}
			out.Reset()
			if err := (&closingCmd{}).Run(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			for test, result := range tc.results {
				want := fmt.Sprintf("ci: %s: a_test.go:7: %s was lost\nci: %[1]s: in its second line\n", test, test)
				if failed := result == "FAIL" || result == "ONCE"; strings.Contains(out.String(), want) != failed {
					t.Errorf("%s: the closing lines should have what %s said last if it failed, got %s", tc.reason, test, out)
				}
			}
			if named := regexp.MustCompile(`FLAKY: (\w*)`).FindStringSubmatch(out.String()); len(named) > 0 != (tc.flaky != "") || len(named) > 0 && named[1] != tc.flaky {
				t.Errorf("%s: the closing lines should name %q, got %s", tc.reason, tc.flaky, out)
			}
		})
	}
}

func TestManyFailuresAreNoNoise(t *testing.T) {
	for failures, want := range map[int]int{noisy: 2, noisy + 1: 1} {
		p, _ := started(t, 10)
		p.Tests = nil
		flags, program := filepath.Join(t.TempDir(), "flags"), filepath.Join(t.TempDir(), "binary")
		t.Setenv("FLAGS", flags)
		for i := range failures {
			name := fmt.Sprintf("TestChange%d", i)
			p.Tests = append(p.Tests, tiers.Test{Name: name, Nodes: 1, Tier: tiers.Change, Minutes: 1})
			t.Setenv("RESULT_"+name, "ONCE")
		}
		if err := os.WriteFile(program, []byte(binary), 0o755); err != nil {
			t.Fatal(err)
		}
		err := (&runCmd{selection: selection{Nodes: 1}, CI: true, Command: []string{program, "exec", "--", "e2e.test"}}).Run(t.Context(), p)
		if (err == nil) != (want == 2) {
			t.Errorf("%d tests that pass the second time: got error %v", failures, err)
		}
		ran, err := os.ReadFile(flags)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(ran), "-test.run="); got != want {
			t.Errorf("%d tests that fail should run %d times, got %d", failures, want, got)
		}
	}
}

func TestRunEndsWithCI(t *testing.T) {
	p, _ := started(t, 0)
	program := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho '=== RUN   TestChange'\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := (&runCmd{selection: selection{Nodes: 1}, Command: []string{program}}).Run(ctx, p)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 20*time.Second {
		t.Errorf("a run that is interrupted should end, got %v after %s", err, time.Since(began))
	}
	if l := p.ledger(); len(l) != 0 {
		t.Errorf("what was interrupted says nothing about a test, got %v", l)
	}
}

func pass(test string, daysAgo int) tiers.Run {
	return tiers.Run{Began: day.AddDate(0, 0, -daysAgo), Test: test, Commit: "c", Occasion: tiers.Named, Result: tiers.Passed, Took: time.Minute}
}

func TestResults(t *testing.T) {
	r := &results{out: &bytes.Buffer{}, now: func() time.Time { return day }}
	text := "=== RUN   TestA\n=== RUN   TestA/Part\n    --- PASS: TestA/Part (0.50s)\n--- PASS: TestA (90.50s)\n=== RUN   TestB\n    b_test.go:7: --- PASS: TestB (1.00s)\n--- FAIL: TestB/Odd (1.00s)\n"
	for _, c := range []byte(text) { // as a pipe may cut it
		if _, err := r.Write([]byte{c}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]tiers.Run{
		"TestA": {Test: "TestA", Began: day.Add(-90500 * time.Millisecond), Took: 90500 * time.Millisecond, Result: tiers.Passed},
		"TestB": {Test: "TestB", Began: day, Result: tiers.Unfinished},
	}
	if diff := cmp.Diff(want, r.byTest); diff != "" {
		t.Errorf("only tests count, not their parts (-want +got):\n%s", diff)
	}
	for _, line := range []string{"=== RUN   TestC", "    c_test.go:1: it is there: after 1.5s", "    c_test.go:2: 3 of 4 were lost:", "        the last one", "        c_test.go:3: another is there: after 2s", "        and its second line", "=== NAME  TestA", "    a_test.go:9: other"} {
		r.read(line)
	}
	if diff := cmp.Diff([]string{"c_test.go:2: 3 of 4 were lost:\n        the last one"}, r.said["TestC"]); diff != "" {
		t.Errorf("what a test said should be told apart from what it reached and from what others said (-want +got):\n%s", diff)
	}
	if got := r.out.(*bytes.Buffer).String(); got != text {
		t.Errorf("what a test prints should be passed on, got %q", got)
	}
}

func TestClosing(t *testing.T) {
	p, out := started(t, 61)
	p.account("lint", 125*time.Second)
	p.account("e2e tests on 1 node", 59*time.Second)
	cases := []struct {
		reason string
		slow   []tiers.Run
		want   string
	}{
		{
			reason: "when no slow test ran, it should be plain", want: `ci: 61:00 in all, with a budget of 70:00: lint 2:05, e2e tests on 1 node 0:59
ci: 0 of 3 slow e2e tests ran in the time that was left: none
ci: due next: (Test\w+ \(the ledger knows of no run\)(, )?){3}
`,
		},
		{
			reason: "what ran is no longer due", slow: []tiers.Run{{Test: "TestSlow", Result: tiers.Passed}, {Test: "TestShort", Result: tiers.Failed}},
			want: `ci: 61:00 .*
ci: 2 of 3 slow e2e tests ran in the time that was left: TestSlow passed, TestShort failed
ci: due next: TestSlowThree \(the ledger knows of no run\)
`,
		},
	}
	for _, tc := range cases {
		out.Reset()
		p.accountSlow(tc.slow)
		if err := (&closingCmd{}).Run(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile("^" + tc.want + "$").MatchString(out.String()) {
			t.Errorf("%s: want %s, got %s", tc.reason, tc.want, out)
		}
	}
}
