// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A result is what clients saw of one fault.
type result struct {
	Tool  string `json:"tool"`
	Fault string `json:"fault"`
	Round int    `json:"round"`
	// Gaps are the longest times without an acknowledged write of each client that the fault did not isolate, in seconds. A client reports a
	// time of half a second or longer; 0 is a shorter one.
	Gaps []float64 `json:"gaps"`
	// Healed is after how many seconds all members followed again. 0 is not at all, within the time that they had.
	Healed float64 `json:"healed"`
}

// rows of all writers at the end.
type rows struct {
	Acknowledged, Failed, Lost int64
}

// A line of a writer: see images/demo-database.
type line struct {
	First string `json:"first"`
	Gap   *struct {
		To      time.Time `json:"to"`
		Seconds float64   `json:"seconds"`
	} `json:"gap"`
	Account *struct {
		Acknowledged int64   `json:"acknowledged"`
		Failed       int64   `json:"failed"`
		Lost         []int64 `json:"lost"`
	} `json:"account"`
}

// lines that a writer has printed.
func (r *trial) lines(ctx context.Context, pod string) ([]line, error) {
	out, err := r.do(ctx, "", "logs", pod)
	if err != nil {
		return nil, err
	}
	return parse(out), nil
}

func parse(log string) []line {
	var all []line
	for text := range strings.Lines(log) {
		var l line
		if json.Unmarshal([]byte(text), &l) == nil {
			all = append(all, l)
		}
	}
	return all
}

// longest gap of a writer that ended after a time.
func (r *trial) longest(ctx context.Context, w writer, since time.Time) (float64, error) {
	lines, err := r.lines(ctx, w.pod)
	if err != nil {
		return 0, err
	}
	most := 0.0
	for _, l := range lines {
		if l.Gap != nil && l.Gap.To.After(since) {
			most = max(most, l.Gap.Seconds)
		}
	}
	return most, nil
}

// account ends all writers, which compare what was acknowledged with what is there.
func (r *trial) account(ctx context.Context) (rows, error) {
	var sum rows
	for _, w := range r.writers {
		log := make(chan string, 1)
		go func() {
			out, _ := r.do(ctx, "", "logs", "--follow", "--tail=1", w.pod)
			log <- out
		}()
		if err := sleep(ctx, 2*time.Second); err != nil {
			return sum, err
		}
		if _, err := r.do(ctx, "", "delete", "pod", w.pod); err != nil {
			return sum, err
		}
		said := <-log
		lines := parse(said)
		if len(lines) == 0 || lines[len(lines)-1].Account == nil {
			return sum, fmt.Errorf("cannot read the account of %s: it ended with %q", w.pod, said)
		}
		a := lines[len(lines)-1].Account
		sum.Acknowledged += a.Acknowledged
		sum.Failed += a.Failed
		sum.Lost += int64(len(a.Lost))
	}
	return sum, nil
}

// table of all results, as Markdown. Of each fault it has the client that waited longest.
func table(tool string, all []result, sum rows) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| %s | writes stopped, s: median | worst | each | all members follow, s: median |\n|---|---|---|---|---|\n", tool)
	var names []string
	by := map[string][]result{}
	for _, r := range all {
		if by[r.Fault] == nil {
			names = append(names, r.Fault)
		}
		by[r.Fault] = append(by[r.Fault], r)
	}
	for _, name := range names {
		gaps, healed := make([]float64, 0, len(by[name])), make([]float64, 0, len(by[name]))
		each := make([]string, 0, len(by[name]))
		for _, r := range by[name] {
			worst := slices.Max(append([]float64{0}, r.Gaps...))
			gaps = append(gaps, worst)
			healed = append(healed, cmp.Or(r.Healed, math.Inf(1)))
			each = append(each, fmt.Sprintf("%.1f", worst))
		}
		follow := fmt.Sprintf("%.0f", median(healed))
		if math.IsInf(median(healed), 1) {
			follow = "never"
		}
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %s | %s |\n", name, median(gaps), slices.Max(gaps), strings.Join(each, ", "), follow)
	}
	fmt.Fprintf(&b, "\n%d rows acknowledged, %d writes failed, %d rows lost\n", sum.Acknowledged, sum.Failed, sum.Lost)
	return b.String()
}

// median of some numbers: of two in the middle the mean.
func median(all []float64) float64 {
	s := slices.Sorted(slices.Values(all))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
