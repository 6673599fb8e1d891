// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/curve"
)

// lineOf values; none is less than -1e9.
func lineOf(values ...float64) curve.Line {
	var l curve.Line
	for _, v := range values {
		if v < -1e9 {
			l = append(l, nil)
		} else {
			l = append(l, new(v))
		}
	}

	return l
}

const none = -1e10

func moments(n int) []time.Time {
	var all []time.Time
	for i := range n {
		all = append(all, now.Add(time.Duration(i)*time.Minute))
	}

	return all
}

// TestCharts: each value is at its place, in the unit that people read, and in the table as well.
func TestCharts(t *testing.T) {
	c := curve.Curves{Moments: moments(5), Window: 2 * time.Minute, Candidate: "b", More: 2, Checks: []curve.Curve{{
		Check: observev1alpha1.Check{Name: "success", Kind: observev1alpha1.CheckSuccessRatio, Min: new(0.99)},
		Live:  lineOf(1, 0.998, 0.999, 1, 1), Candidate: lineOf(none, 0.95, none, 0.96, 0.9612), Least: lineOf(0.99, 0.99, 0.99, 0.99, 0.99),
	}}}
	got := ChartsOf(c)
	if got.About != "From 09:00 to 09:04 UTC. Each value is about the 2m before it." || !got.Beside || got.More != 2 || len(got.All) != 1 {
		t.Errorf("got %+v", got)
	}
	chart := got.All[0]
	if want := "success, share of requests that succeed, at least 99 %. Now: at least 99 %, live revision 100 %, candidate 96.12 %"; chart.Title != want {
		t.Errorf("want %q, got %q", want, chart.Title)
	}
	if diff := cmp.Diff([]string{"Time", "at least", "live revision", "candidate"}, chart.Columns); diff != "" {
		t.Errorf("columns: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(ChartRow{"09:02:00", []string{"99 %", "99.9 %", "none"}}, chart.Rows[2]); diff != "" {
		t.Errorf("rows: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"94.5 %", "97.2 %", "100.0 %"}, words(chart.Levels)); diff != "" {
		t.Errorf("levels: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"09:00", "09:02", "09:04"}, words(chart.Times)); diff != "" {
		t.Errorf("times: -want, +got:\n%s", diff)
	}
	roles := map[string]int{}
	for _, s := range chart.Strokes {
		roles[s.Role] = strings.Count(s.Path, "M")
		for _, m := range regexp.MustCompile(`[ML](\d+) ([\d.]+)`).FindAllStringSubmatch(s.Path, -1) {
			x, _ := strconv.ParseFloat(m[1], 64)
			y, _ := strconv.ParseFloat(m[2], 64)
			if x < plotLeft || x > plotRight || y < plotTop || y > plotBottom {
				t.Errorf("%s is at %s, outside of the plot", s.Role, m[0])
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"bound": 1, "live": 1, "candidate": 2}, roles); diff != "" {
		t.Errorf("a line has a gap where there is no value: -want, +got:\n%s", diff)
	}

	// What has no values, or only one, can be drawn, too.
	for reason, one := range map[string]curve.Curve{
		"nothing":    {Check: observev1alpha1.Check{Kind: observev1alpha1.CheckQuery}, Live: lineOf(none), Missing: "no pods"},
		"zero":       {Check: observev1alpha1.Check{Kind: observev1alpha1.CheckQuery}, Live: lineOf(0), Most: lineOf(0)},
		"all of it":  {Check: observev1alpha1.Check{Kind: observev1alpha1.CheckSuccessRatio}, Live: lineOf(1)},
		"none of it": {Check: observev1alpha1.Check{Kind: observev1alpha1.CheckSuccessRatio}, Live: lineOf(0)},
		"below zero": {Check: observev1alpha1.Check{Kind: observev1alpha1.CheckQuery}, Live: lineOf(-3)},
		"huge":       {Check: observev1alpha1.Check{Kind: observev1alpha1.CheckQuery}, Live: lineOf(1e300)},
	} {
		chart := ChartsOf(curve.Curves{Moments: moments(1), Checks: []curve.Curve{one}}).All[0]
		text := fmt.Sprint(chart.Title, chart.Strokes, chart.Levels, chart.Times)
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s: %s", reason, text)
		}
	}
	if got := ChartsOf(curve.Curves{}); len(got.All) != 0 {
		t.Errorf("nothing is drawn of nothing: %+v", got)
	}
}

func words(all []Text) []string {
	out := make([]string, 0, len(all))
	for _, t := range all {
		out = append(out, t.Words)
	}

	return out
}

// TestChecksInWords has what each check measures and asks for.
func TestChecksInWords(t *testing.T) {
	relative := observev1alpha1.RelativeToBaseline
	for want, c := range map[string]observev1alpha1.Check{
		"share of requests that succeed, at least 99.5 %":                            {Kind: observev1alpha1.CheckSuccessRatio, Min: new(0.995)},
		"share of requests that succeed, at most 0.25 % less than the live revision": {Kind: observev1alpha1.CheckSuccessRatio, Max: new(0.0025), RelativeTo: relative},
		"p95 of the latency, at most 50 ms":                                          {Kind: observev1alpha1.CheckLatency, Max: new(50.0)},
		"p99 of the latency, at most 1.1 times the live revision":                    {Kind: observev1alpha1.CheckLatency, Percentile: 99, Max: new(1.1), RelativeTo: relative},
		"p95 of the time to the first token, at most 300 ms":                         {Kind: observev1alpha1.CheckFirstToken, Max: new(300.0)},
		"p50 of the time for each further token, at most 30 ms":                      {Kind: observev1alpha1.CheckEachToken, Percentile: 50, Max: new(30.0)},
		"value of its query, at least 1, at most 10":                                 {Kind: observev1alpha1.CheckQuery, Min: new(1.0), Max: new(10.0)},
		"distance to the outputs of the live revision, at most 0.2":                  {Kind: observev1alpha1.CheckDrift, Max: new(0.2), RelativeTo: relative},
		"distance to the outputs 24h before, at most 0.2":                            {Kind: observev1alpha1.CheckDrift, Max: new(0.2), Reference: &metav1.Duration{Duration: 24 * time.Hour}},
		"share of requests that succeed":                                             {Kind: observev1alpha1.CheckSuccessRatio, RelativeTo: relative},
	} {
		if got := wordsOf(c, unitOf(c)); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}
