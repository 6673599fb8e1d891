// SPDX-License-Identifier: Apache-2.0

//go:build spark && linux

package spark_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Memory in MiB that an application with one worker takes, and what has to stay for the machine.
const (
	each  = 500
	spare = 2048
)

// first is when the first task of the application began, or the zero time.
func (a *application) first() time.Time {
	a.t.Helper()
	var first time.Time
	all := strings.Fields(a.read("tasks"))
	for i := 1; i < len(all); i += 2 {
		ms, err := strconv.ParseInt(all[i], 10, 64)
		if err != nil {
			a.t.Fatalf("cannot read when a task began: %v", err)
		}
		if at := time.UnixMilli(ms); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// available is the memory in MiB that new processes can take.
func available(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var kib int
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); err == nil {
			return kib >> 10
		}
	}
	t.Fatal("cannot find MemAvailable in /proc/meminfo")
	return 0
}

// TestManyAtOnce starts applications with one worker each, 10 unless CAPSTAN_SPARK_APPLICATIONS says another number.
func TestManyAtOnce(t *testing.T) {
	many := 10
	if raw := os.Getenv("CAPSTAN_SPARK_APPLICATIONS"); raw != "" {
		n, err := strconv.Atoi(raw)
		if err != nil || n < 1 {
			t.Fatalf("CAPSTAN_SPARK_APPLICATIONS should be a number from 1 on, got %q", raw)
		}
		many = n
	}
	before := available(t)
	if need := many*each + spare; before < need {
		t.Fatalf("%d applications need %d MiB, and %d are available: set CAPSTAN_SPARK_APPLICATIONS", many, need, before)
	}
	home, jar := sparkHome(t), filepath.Join(t.TempDir(), "squares.jar")
	compile(t, home, jar)
	var all []*application
	for i := range many {
		folder := t.TempDir()
		if err := os.Link(jar, filepath.Join(folder, "squares.jar")); err != nil {
			t.Fatal(err)
		}
		all = append(all, prepare(t, 1, fmt.Sprintf("many%d", i), home, folder, plan(1), shared+"/squares.jar", shared, strconv.Itoa(tasks), "500", "none"))
	}

	since := time.Now()
	for _, a := range all {
		a.submit()
	}
	t.Logf("all pods of %d applications began within %s", many, time.Since(since).Round(100*time.Millisecond))
	least := before
	var firsts []time.Duration
	for _, a := range all {
		a.until("the first task begins", 4*long, func() bool {
			least = min(least, available(t))
			return !a.first().IsZero()
		})
		firsts = append(firsts, a.first().Sub(since))
	}
	again := 0
	for _, a := range all {
		a.done()
		again += a.began() - tasks
	}
	slices.Sort(firsts)
	first, last := firsts[0], firsts[many-1]
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
	t.Logf("first tasks of %d applications on %d processors: first after %s, median %s, last %s, last/first %.2f",
		many, runtime.NumCPU(), round(first), round(firsts[many/2]), round(last), last.Seconds()/first.Seconds())
	t.Logf("all done after %s, with %d tasks begun again and %d MiB less available", round(time.Since(since)), again, before-least)
	// With more applications than its processors can start in some minutes, Spark itself begins again: drivers that do not reach their master end.
	if last > 3*first {
		t.Errorf("the last first task should begin within three times %s, got %s", first, last)
	}
}
