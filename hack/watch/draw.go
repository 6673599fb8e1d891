// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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

// bar is how many columns all requests are.
const bar = 40

// draw a view, line by line, none of them longer than the screen is wide.
func draw(v view, columns int) []string {
	p := &picture{columns: columns}
	if v.trouble != "" {
		p.wrap(red, "", v.trouble)

		return p.lines
	}
	a := v.algorithm
	p.add(bold, fmt.Sprintf("Algorithm %s/%s is %s", a.Metadata.Namespace, a.Metadata.Name, a.Status.Phase))
	r := a.Status.Rollout
	if r == nil {
		p.add("", "the rollout is "+v.phase())
		p.slots(v)

		return p.lines
	}

	title := r.Phase
	if r.Held != "" {
		title += " " + r.Held
	}
	if r.Reason != "" {
		title += ", " + r.Reason
	}
	words := "  for " + span(v.now.Sub(r.Since))
	if r.Until.After(v.now) {
		words += ", " + span(r.Until.Sub(v.now)) + " to go"
	}
	p.parts(part{colourOf(r.Phase) + bold, title}, part{"", words}, part{faint, fmt.Sprintf("  epoch %d", r.Epoch)})
	p.wrap("", "", r.Message)
	p.add("", "")
	p.slots(v)
	p.add("", "")
	p.checks(r.Evidence)
	if d := r.LastDecision; d != nil {
		p.wrap(faint, "last decision  ", fmt.Sprintf("%s → %s, %s: %s", d.From, d.To, d.Reason, d.Message))
	}
	for _, f := range r.Failed {
		p.wrap(red, "failed         ", fmt.Sprintf("%s, attempt %d, %s: %s", f.Revision, f.Attempts, f.Reason, f.Message))
	}

	return p.lines
}

// line is a view in one line, without the time: it changes when something has.
func line(v view) string {
	if v.trouble != "" {
		return v.trouble
	}
	r := v.algorithm.Status.Rollout
	if r == nil {
		return "the rollout is " + v.phase()
	}
	words := []string{fmt.Sprintf("%-13s %3d %%  %s", r.Phase, r.Weight, r.Reason)}
	for _, d := range v.deployments {
		words = append(words, fmt.Sprintf("slot %s: %s %d/%d", d.slot(), d.revision(), d.Status.Available, d.Spec.Replicas))
	}
	for _, e := range r.Evidence {
		told := strings.TrimSpace(fmt.Sprintf("%s: %s %s", e.Name, e.Verdicts, number(e.Value)))
		if e.Samples != nil {
			told += " of " + samples(e)
		}
		words = append(words, told)
	}

	return strings.Join(append(words, r.Message), "  ")
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
		words := part.words
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

// slots with what runs in them, and the share of requests that may reach it.
func (p *picture) slots(v view) {
	for _, d := range v.deployments {
		share := v.share(d)
		full := int(math.Round(share / 100 * bar))
		role := "live     "
		if r := v.algorithm.Status.Rollout; r != nil && r.Candidate != "" && r.Candidate == d.revision() {
			role = "candidate"
		} else if d.slot() != v.algorithm.Status.Revision.Slot {
			role = "idle     "
		}
		p.parts(
			part{"", fmt.Sprintf("slot %s  %s  %-10s  %2d of %2d replicas  ", d.slot(), role, d.revision(), d.Status.Available, d.Spec.Replicas)},
			part{green, strings.Repeat("█", full)},
			part{faint, strings.Repeat("░", bar-full)},
			part{bold, fmt.Sprintf(" %5.4g %%", share)},
		)
	}
}

// checks with what is known of the candidate.
func (p *picture) checks(all []evidence) {
	if len(all) == 0 {
		return
	}
	p.add(faint, fmt.Sprintf("%-25s %-10s %9s %19s %9s %8s  %s", "check", "verdicts", "value", "between", "baseline", "of", "asked"))
	for _, e := range all {
		between := ""
		if e.Lower != nil && e.Upper != nil {
			between = number(e.Lower) + " and " + number(e.Upper)
		}
		verdicts := make([]part, 0, len(e.Verdicts)+1)
		for _, letter := range e.Verdicts {
			colour := yellow
			switch letter {
			case 'P':
				colour = green
			case 'F':
				colour = red + bold
			}
			verdicts = append(verdicts, part{colour, string(letter)})
		}
		verdicts = append(verdicts, part{"", strings.Repeat(" ", max(10-len(e.Verdicts), 0))})
		p.parts(append(append([]part{{"", fmt.Sprintf("%-25s ", e.Name)}}, verdicts...),
			part{bold, fmt.Sprintf(" %9s", number(e.Value))},
			part{"", fmt.Sprintf(" %19s %9s %8s  %s", between, number(e.Baseline), samples(e), e.Asked)})...)
	}
	p.add("", "")
}

// number to four digits, as a person reads them.
func number(v *float64) string {
	if v == nil {
		return ""
	}

	return fmt.Sprintf("%.4g", *v)
}

func samples(e evidence) string {
	if e.Samples == nil {
		return ""
	}

	return strconv.FormatInt(*e.Samples, 10)
}

// span of time, to the second.
func span(d time.Duration) string { return max(d, 0).Round(time.Second).String() }

func colourOf(phase string) string {
	switch phase {
	case "RollingBack", rolledBack:
		return red
	case "Holding":
		return yellow
	default:
		return green
	}
}
