// SPDX-License-Identifier: Apache-2.0

// Package screen draws what is known of an Algorithm or a Database on one screen of text.
package screen

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/internal/conditions"
)

// Colours of a terminal.
const (
	bold   = "\x1b[1m"
	faint  = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// A View can be drawn.
type View interface {
	// Draw it, line by line, none of them longer than the screen is wide.
	Draw(columns int) []string

	// Line is the view in one line, without the time: it changes when something has.
	Line() string

	// Phase in one word, and whether it is about the latest spec.
	Phase() (phase string, current bool)
}

// Trouble is why nothing was seen.
type Trouble struct{ Err error }

// Draw the error.
func (t Trouble) Draw(columns int) []string {
	p := &picture{columns: columns}
	p.wrap(red, "", t.Err.Error())

	return p.lines
}

// Line has the error.
func (t Trouble) Line() string { return t.Err.Error() }

// Phase is not known.
func (t Trouble) Phase() (string, bool) { return "", false }

// Over draws each view over the one before.
func Over(out io.Writer, columns int) func(View, time.Duration) {
	drawn := 0

	return func(v View, _ time.Duration) {
		var b strings.Builder
		if drawn > 0 {
			fmt.Fprintf(&b, "\x1b[%dA", drawn)
		}
		picture := v.Draw(columns)
		for _, l := range picture {
			b.WriteString("\r" + l + "\x1b[K\n")
		}
		// What is left of a longer picture.
		b.WriteString("\x1b[J")
		drawn = len(picture)
		_, _ = io.WriteString(out, b.String())
	}
}

// Lines writes a line when something has changed, where there is no screen.
func Lines(out io.Writer) func(View, time.Duration) {
	last := ""

	return func(v View, since time.Duration) {
		if l := conditions.Visible(v.Line()); l != last {
			last = l
			_, _ = fmt.Fprintf(out, "%6.1f s  %s\n", since.Seconds(), l)
		}
	}
}

// Plain is a picture without colours.
func Plain(lines []string) []string {
	all := make([]string, 0, len(lines))
	for _, l := range lines {
		for _, c := range []string{bold, faint, red, green, yellow, plain} {
			l = strings.ReplaceAll(l, c, "")
		}
		all = append(all, strings.TrimRight(l, " "))
	}

	return all
}

// A picture grows line by line.
type picture struct {
	columns int
	lines   []string
}

// A part of a line has a colour.
type part struct{ colour, words string }

func (p *picture) add(colour, words string) { p.parts(part{colour, words}) }

// parts of a line; what is too long is cut off.
func (p *picture) parts(all ...part) {
	var b strings.Builder
	left := p.columns
	for _, part := range all {
		words := conditions.Visible(part.words)
		if n := utf8.RuneCountInString(words); n > left {
			words = string([]rune(words)[:left])
		}
		left -= utf8.RuneCountInString(words)
		switch {
		case words == "":
		case part.colour == "":
			b.WriteString(words)
		default:
			b.WriteString(part.colour + words + plain)
		}
	}
	p.lines = append(p.lines, b.String())
}

// wrap a text at its spaces, into as many lines as it needs, the first with a title.
func (p *picture) wrap(colour, title, text string) {
	indent := utf8.RuneCountInString(title)
	line := title
	empty := true
	for word := range strings.FieldsSeq(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > p.columns {
			p.add(colour, line)
			line, empty = strings.Repeat(" ", indent), true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	if !empty {
		p.add(colour, line)
	}
}

// blocks are the conditions that are not as they should be, with the remedy.
func (p *picture) blocks(all []xpv2.Condition) {
	for _, c := range conditions.Blocks(all) {
		colour := red
		if c.Status == corev1.ConditionUnknown {
			colour = yellow
		}
		p.wrap(colour, fmt.Sprintf("%-16s ", c.Type), fmt.Sprintf("%s: %s", c.Reason, c.Message))
	}
}

func condition(conditions []xpv2.Condition, t xpv2.ConditionType) xpv2.Condition {
	for _, c := range conditions {
		if c.Type == t {
			return c
		}
	}

	return xpv2.Condition{}
}

// synced reports whether Crossplane has carried out a pass with the latest spec.
func synced(conditions []xpv2.Condition, generation int64) bool {
	c := condition(conditions, xpv2.TypeSynced)

	return c.Status == corev1.ConditionTrue && c.ObservedGeneration == generation
}

// span of time, to the second, and of long ones only what counts.
func span(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	default:
		return d.String()
	}
}

// first of the conditions, in a word or two.
func first(blocking []xpv2.Condition) string {
	if len(blocking) == 0 {
		return ""
	}
	words := fmt.Sprintf("%s %s", blocking[0].Type, blocking[0].Reason)
	if more := len(blocking) - 1; more > 0 {
		words += fmt.Sprintf(" and %d more", more)
	}

	return words
}
