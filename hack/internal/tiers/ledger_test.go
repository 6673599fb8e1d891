// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "capstan", "runs.tsv")
	l, err := ReadLedger(file)
	if err != nil || len(l) != 0 {
		t.Fatalf("without a file the ledger should be empty, got %v, %v", l, err)
	}
	later, sooner := passed("TestA", 1), passed("TestB", 2)
	if err := Record(file, later, sooner); err != nil {
		t.Fatal(err)
	}
	if l, err = ReadLedger(file); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Ledger{sooner, later}, l); diff != "" {
		t.Errorf("runs should come back in the order in which they began (-want +got):\n%s", diff)
	}

	for i := range 30 {
		if err := Record(file, passed("TestA", -i)); err != nil {
			t.Fatal(err)
		}
	}
	if l, err = ReadLedger(file); err != nil || len(l) != keptRuns+1 {
		t.Errorf("want %d runs of TestA and one of TestB, got %d, %v", keptRuns, len(l), err)
	}
	if got := l.LastPass("TestA"); !got.Equal(day.AddDate(0, 0, 29)) {
		t.Errorf("the newest runs should be kept, got %s", got)
	}
}

func TestReadLedgerDamaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.tsv")
	good := passed("TestA", 1)
	text := good.String() + "\n2026-11-23T00:00:00Z\tTestB\nyesterday\tTestA\tc\tchange\tpassed\t1\n" + strings.Replace(good.String(), "60.0", "x", 1) + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := ReadLedger(file)
	if diff := cmp.Diff(Ledger{good}, l); diff != "" {
		t.Errorf("good lines should be used (-want +got):\n%s", diff)
	}
	for _, want := range []string{"line 2", "line 3", "line 4"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error for %s, got: %v", want, err)
		}
	}
	if err := Record(file, passed("TestB", 0)); err != nil {
		t.Fatal(err)
	}
	if l, err = ReadLedger(file); err != nil || len(l) != 2 {
		t.Errorf("the next record should mend the file, got %v, %v", l, err)
	}
}

func TestTypically(t *testing.T) {
	test := Test{Name: "TestA", Minutes: 5}
	took := func(minutes ...int) Ledger {
		var l Ledger
		for i, m := range minutes {
			r := passed("TestA", 20-i)
			r.Took = time.Duration(m) * time.Minute
			l = append(l, r)
		}
		return l
	}
	nightly, failed := took(60, 60, 60), took(1, 1, 1)
	for i := range nightly {
		nightly[i].Occasion, failed[i].Result = Nightly, Failed
	}
	cases := map[string]struct {
		reason string
		l      Ledger
		want   int
	}{
		"Unknown": {reason: "the list's estimate is all there is", want: 5},
		"Shorter": {reason: "two runs are too few to trust", l: took(2, 2), want: 5},
		"Longer":  {reason: "but one is enough to be careful", l: took(2, 7), want: 7},
		"Median":  {reason: "three runs have a median", l: took(2, 9, 3), want: 3},
		"Newest":  {reason: "what it took long ago does not count", l: took(9, 9, 9, 9, 9, 9, 9, 9, 9, 2, 2, 2, 2, 2), want: 2},
		"Nightly": {reason: "at night tests wait longer on purpose", l: nightly, want: 5},
		"Failed":  {reason: "a failure may come early", l: failed, want: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, want := tc.l.typically(test), time.Duration(tc.want)*time.Minute; got != want {
				t.Errorf("%s: want %s, got %s", tc.reason, want, got)
			}
		})
	}
}
