// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Results of a run.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
	// Unfinished is a test whose process ended before it did.
	Unfinished = "unfinished"
)

// Occasions of a run.
const (
	// Nightly runs wait longer on purpose, and so say nothing about how long a test typically takes.
	Nightly = "nightly"
	Named   = "named"
)

// keptRuns of each test are enough for a median.
const keptRuns = 20

// A Run of one test.
type Run struct {
	Began    time.Time
	Test     string
	Commit   string
	Occasion string
	Result   string
	Took     time.Duration
}

// A Ledger holds runs in the order in which they began.
type Ledger []Run

// LedgerFile is where this user's ledger is.
func LedgerFile() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the user's cache folder: %w", err)
	}
	return filepath.Join(cache, "capstan", "e2e-runs.tsv"), nil
}

// ReadLedger returns what is readable of a ledger, also with an error. Without a file it is empty.
func ReadLedger(file string) (Ledger, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the ledger of e2e runs: %w", err)
	}
	var l Ledger
	var errs []error
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		r, err := parseRun(strings.TrimSuffix(line, "\n"))
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot read line %d of %s: %w", n, file, err))
			continue
		}
		l = append(l, r)
	}
	slices.SortStableFunc(l, func(a, b Run) int { return a.Began.Compare(b.Began) })
	return l, errors.Join(errs...)
}

func parseRun(line string) (Run, error) {
	f := strings.Split(line, "\t")
	if len(f) != 6 {
		return Run{}, fmt.Errorf("want 6 fields, got %d", len(f))
	}
	began, err := time.Parse(time.RFC3339, f[0])
	if err != nil {
		return Run{}, err
	}
	seconds, err := strconv.ParseFloat(f[5], 64)
	if err != nil {
		return Run{}, err
	}
	return Run{Began: began, Test: f[1], Commit: f[2], Occasion: f[3], Result: f[4], Took: time.Duration(seconds * float64(time.Second))}, nil
}

func (r Run) String() string {
	return strings.Join([]string{
		r.Began.UTC().Format(time.RFC3339), r.Test, r.Commit, r.Occasion, r.Result, strconv.FormatFloat(r.Took.Seconds(), 'f', 1, 64),
	}, "\t")
}

// Record adds runs to a ledger and drops the oldest of each test. Two that record at once may lose a run, which then only comes sooner again.
func Record(file string, runs ...Run) error {
	l, err := ReadLedger(file)
	if err != nil && l == nil {
		return err
	}
	l = append(l, runs...)
	slices.SortStableFunc(l, func(a, b Run) int { return a.Began.Compare(b.Began) })
	count := map[string]int{}
	var lines []string
	for _, r := range slices.Backward(l) {
		if count[r.Test]++; count[r.Test] <= keptRuns {
			lines = append(lines, r.String()+"\n")
		}
	}
	slices.Reverse(lines)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("cannot make a folder for the ledger: %w", err)
	}
	// A whole file takes the place of the other, so that no reader sees half of it.
	temp := fmt.Sprintf("%s.%d", file, os.Getpid())
	if err := os.WriteFile(temp, []byte(strings.Join(lines, "")), 0o600); err != nil {
		return fmt.Errorf("cannot write the ledger: %w", err)
	}
	if err := os.Rename(temp, file); err != nil {
		return fmt.Errorf("cannot put the ledger in place: %w", err)
	}
	return nil
}

// last run of a test that counts: one that passed or failed.
func (l Ledger) last(test string) (Run, bool) {
	for _, r := range slices.Backward(l) {
		if r.Test == test && (r.Result == Passed || r.Result == Failed || r.Result == Unfinished) {
			return r, true
		}
	}
	return Run{}, false
}

// LastPass is when a test passed last, or the zero time.
func (l Ledger) LastPass(test string) time.Time {
	for _, r := range slices.Backward(l) {
		if r.Test == test && r.Result == Passed {
			return r.Began
		}
	}
	return time.Time{}
}

// typically is how long a test takes: the median of what was measured once there is enough of it. Before, the longest one.
func (l Ledger) typically(t Test) time.Duration {
	var took []time.Duration
	for _, r := range slices.Backward(l) {
		if r.Test == t.Name && r.Result == Passed && r.Occasion != Nightly && len(took) < 9 {
			took = append(took, r.Took)
		}
	}
	if len(took) < 3 {
		return slices.MaxFunc(append(took, t.typically()), cmp.Compare[time.Duration])
	}
	slices.Sort(took)
	return took[len(took)/2]
}
