// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/curve"
)

// Charts are the evidence about an Algorithm.
type Charts struct {
	// About says which time they are about.
	About string

	// Beside reports whether a candidate is measured beside the live revision.
	Beside bool
	All    []Chart
	// More is how many checks are not drawn.
	More int
}

// A Chart has the lines of one check, with the numbers that an SVG needs, and the same as a table.
type Chart struct {
	Name string
	// Words for what it measures, and what it asks for.
	Words string
	// Title has the latest values, for those who do not see the lines.
	Title         string
	Width, Height int
	Strokes       []Stroke
	// Levels are at the left, and Times below.
	Levels, Times []Text
	Columns       []string
	Rows          []ChartRow
	// Missing is why there is no value now.
	Missing string
}

// A Stroke is a line, as the data of an SVG path. Its role is live, candidate or bound.
type Stroke struct{ Role, Path string }

// A ChartRow has what was measured at a time.
type ChartRow struct {
	When   string
	Values []string
}

// Measures of charts, in units of the SVG.
const (
	chartWidth, chartHeight            = 480, 190
	plotLeft, plotRight                = 74, chartWidth - 24
	plotTop, plotBottom                = 14, chartHeight - 30
	clockTime                          = "15:04"
	roleLive, roleCandidate, roleBound = "live", "candidate", "bound"
)

// ChartsOf curves.
func ChartsOf(c curve.Curves) Charts {
	out := Charts{Beside: c.Candidate != "", More: c.More}
	if len(c.Moments) == 0 {
		return out
	}
	first, last := c.Moments[0], c.Moments[len(c.Moments)-1]
	out.About = fmt.Sprintf("From %s to %s UTC. Each value is about the %s before it.", first.UTC().Format(clockTime), last.UTC().Format(clockTime), lasting(c.Window))
	for _, one := range c.Checks {
		out.All = append(out.All, chartOf(one, c.Moments))
	}

	return out
}

// A named line, whose values may be shown in another unit than they have.
type named struct {
	name, role string
	line       curve.Line
}

func chartOf(c curve.Curve, moments []time.Time) Chart {
	u := unitOf(c.Check)
	out := Chart{Name: c.Check.Name, Words: wordsOf(c.Check, u), Width: chartWidth, Height: chartHeight, Missing: c.Missing, Columns: []string{"Time"}}
	lines := slices.DeleteFunc([]named{
		{"at least", roleBound, c.Least}, {"at most", roleBound, c.Most}, {"live revision", roleLive, c.Live}, {"candidate", roleCandidate, c.Candidate},
	}, func(l named) bool { return !slices.ContainsFunc(l.line, func(v *float64) bool { return v != nil }) })
	p := plotOf(u, lines, moments)
	latest := make([]string, 0, len(lines))
	for _, l := range lines {
		out.Columns = append(out.Columns, l.name)
		latest = append(latest, l.name+" "+u.text(l.line[len(l.line)-1]))
		out.Strokes = append(out.Strokes, Stroke{l.role, p.path(l.line)})
	}
	out.Title = out.Name + ", " + out.Words + ". Now: " + cmp.Or(strings.Join(latest, ", "), "nothing")
	for i, at := range moments {
		row := ChartRow{When: at.UTC().Format(clockTime + ":05")}
		for _, l := range lines {
			row.Values = append(row.Values, u.text(l.line[i]))
		}
		out.Rows = append(out.Rows, row)
	}
	out.Levels, out.Times = p.levels(), p.times()

	return out
}

// A unit in which values are shown.
type unit struct {
	factor float64
	sign   string
}

func unitOf(c observev1alpha1.Check) unit {
	switch c.Kind {
	case observev1alpha1.CheckSuccessRatio:
		return unit{100, " %"}
	case observev1alpha1.CheckLatency, observev1alpha1.CheckFirstToken, observev1alpha1.CheckEachToken:
		return unit{1, " ms"}
	default:
		return unit{factor: 1}
	}
}

func (u unit) text(v *float64) string {
	if v == nil {
		return "none"
	}

	return number(*v*u.factor) + u.sign
}

// number with no more digits than matter.
func number(v float64) string {
	if size := math.Abs(v); size >= 1e9 || size > 0 && size < 1e-3 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}

	return strconv.FormatFloat(math.Round(v*1e4)/1e4, 'f', -1, 64)
}

// wordsOf what a check measures, and asks for.
func wordsOf(c observev1alpha1.Check, u unit) string {
	percentile := fmt.Sprintf("p%d of ", cmp.Or(c.Percentile, 95))
	words := []string{map[observev1alpha1.CheckKind]string{
		observev1alpha1.CheckSuccessRatio: "share of requests that succeed",
		observev1alpha1.CheckLatency:      percentile + "the latency",
		observev1alpha1.CheckFirstToken:   percentile + "the time to the first token",
		observev1alpha1.CheckEachToken:    percentile + "the time for each further token",
		observev1alpha1.CheckQuery:        "value of its query",
		observev1alpha1.CheckDrift:        "distance",
	}[c.Kind]}
	relative := c.RelativeTo != ""
	switch {
	case c.Kind == observev1alpha1.CheckDrift && relative:
		words[0] += " to the outputs of the live revision"
	case c.Kind == observev1alpha1.CheckDrift && c.Reference != nil:
		words[0] += " to the outputs " + lasting(c.Reference.Duration) + " before"
	case c.Kind == observev1alpha1.CheckSuccessRatio && relative:
		if c.Max != nil {
			words = append(words, "at most "+u.text(c.Max)+" less than the live revision")
		}

		return strings.Join(words, ", ")
	}
	ask := func(word string, bound *float64) {
		switch {
		case bound == nil:
		case relative && c.Kind != observev1alpha1.CheckDrift:
			words = append(words, word+" "+number(*bound)+" times the live revision")
		default:
			words = append(words, word+" "+u.text(bound))
		}
	}
	ask("at least", c.Min)
	ask("at most", c.Max)

	return strings.Join(words, ", ")
}

// lasting so long, without units that are zero.
func lasting(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}

	return text
}

// A plot maps moments and values to places.
type plot struct {
	unit      unit
	moments   []time.Time
	low, high float64
}

// plotOf lines, with room for each. Shares near 100 % differ by little, and other numbers are seen in relation to zero.
func plotOf(u unit, lines []named, moments []time.Time) plot {
	p := plot{unit: u, moments: moments, low: math.Inf(1), high: math.Inf(-1)}
	for _, l := range lines {
		for _, v := range l.line {
			if v != nil {
				p.low, p.high = min(p.low, *v), max(p.high, *v)
			}
		}
	}
	share := u.sign == " %"
	if p.low > p.high {
		p.low, p.high = 0, 1
	}
	if !share {
		p.low = min(p.low, 0)
	}
	room := (p.high - p.low) / 10
	if room == 0 {
		room = max(math.Abs(p.high)/10, 1e-3)
	}
	p.high += room
	if share {
		p.low, p.high = max(p.low-room, 0), min(p.high, 1)
	}

	return p
}

func (p plot) x(i int) float64 {
	return plotLeft + float64(plotRight-plotLeft)*float64(i)/float64(max(len(p.moments)-1, 1))
}

func (p plot) y(v float64) float64 {
	return plotBottom - (plotBottom-plotTop)*(v-p.low)/(p.high-p.low)
}

// path of a line, with a gap where there is no value. A value between two gaps is a dot.
func (p plot) path(l curve.Line) string {
	var out strings.Builder
	for i, v := range l {
		switch {
		case v == nil:
		case i == 0 || l[i-1] == nil:
			fmt.Fprintf(&out, "M%.0f %.1fh0", p.x(i), p.y(*v))
		default:
			fmt.Fprintf(&out, "L%.0f %.1f", p.x(i), p.y(*v))
		}
	}

	return out.String()
}

// levels with as many digits as set them apart.
func (p plot) levels() []Text {
	digits := 1 - int(math.Floor(math.Log10((p.high-p.low)*p.unit.factor)))
	all := make([]Text, 0, 3)
	for _, v := range []float64{p.low, (p.low + p.high) / 2, p.high} {
		all = append(all, Text{X: plotLeft - 6, Y: int(p.y(v)) + 4, Words: strconv.FormatFloat(v*p.unit.factor, 'f', min(max(digits, 0), 6), 64) + p.unit.sign})
	}

	return all
}

func (p plot) times() []Text {
	n := len(p.moments) - 1
	all := make([]Text, 0, 3)
	for _, i := range []int{0, n / 2, n} {
		all = append(all, Text{X: int(p.x(i)), Y: chartHeight - 8, Words: p.moments[i].UTC().Format(clockTime)})
	}

	return all
}
