// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/tiers"
)

// Files of the report's folder. Each line has fields with a tab between them.
const (
	reportParts = "parts" // seconds, and the part of CI that took them
	reportSlow  = "slow"  // name of a slow test that ran, and its result
	reportOnce  = "once"  // name of a test that failed first, and passed when it ran once more
	reportSaid  = "said"  // name of a test that did not pass, and a line of what it logged last
)

// longestSaid is how many characters the closing lines have of a line that a test logged: what reads them may have room for a page only.
const longestSaid = 300

// dueShown is how many of the slow tests that are due next the closing lines name.
const dueShown = 5

// account for the time that a part took.
func (p *project) account(part string, took time.Duration) {
	p.append(reportParts, fmt.Sprintf("%.0f\t%s\n", took.Seconds(), part))
}

func (p *project) accountSlow(runs []tiers.Run) {
	for _, r := range runs {
		p.append(reportSlow, r.Test+"\t"+r.Result+"\n")
	}
}

func (p *project) accountSecond(tests []tiers.Test) {
	for _, t := range tests {
		p.append(reportOnce, t.Name+"\n")
	}
}

// accountSaid keeps what a test that did not pass logged last, without the states that it reached.
func (p *project) accountSaid(test string, texts []string) {
	for _, text := range texts {
		for line := range strings.Lines(text) {
			line = strings.ToValidUTF8(strings.TrimSpace(line), "")
			if r := []rune(line); len(r) > longestSaid {
				line = string(r[:longestSaid]) + "…"
			}
			p.append(reportSaid, test+"\t"+line+"\n")
		}
	}
}

func (p *project) append(name, text string) {
	if p.Report == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(p.Report, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		p.sayf("tiers: cannot add to the report: %v", err)
	}
}

// lines of a file of the report, in two fields each. The second one may be empty.
func (p *project) lines(name string) ([][2]string, error) {
	data, err := os.ReadFile(filepath.Join(p.Report, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the report: %w", err)
	}
	var out [][2]string
	for line := range strings.Lines(string(data)) {
		a, b, _ := strings.Cut(strings.TrimSpace(line), "\t")
		out = append(out, [2]string{a, b})
	}
	return out, nil
}

type closingCmd struct{}

// Run prints where the time went, and what became of the slow tests.
func (c *closingCmd) Run(ctx context.Context, p *project) error {
	if p.Report == "" {
		return errors.New("cannot print closing lines: CAPSTAN_CI_REPORT names no folder")
	}
	parts, err := p.lines(reportParts)
	if err != nil {
		return err
	}
	var spent []string
	for _, part := range parts {
		seconds, err := strconv.Atoi(part[0])
		if err != nil {
			return fmt.Errorf("cannot read the report: %w", err)
		}
		spent = append(spent, part[1]+" "+clock(time.Duration(seconds)*time.Second))
	}
	p.sayf("ci: %s in all, with a budget of %s: %s", clock(p.now().Sub(time.Unix(p.Started, 0))), clock(p.Budget), strings.Join(spent, ", "))

	ran, err := p.lines(reportSlow)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	did := make([]string, 0, len(ran))
	for _, r := range ran {
		done[r[0]] = true
		did = append(did, r[0]+" "+r[1])
	}
	s := p.situation(tiers.DiffOf(ctx, p.root, p.Base, p.ledger()))
	turns := slices.DeleteFunc(p.Order(s), func(t tiers.Turn) bool { return done[t.Test.Name] })
	due := make([]string, 0, len(turns))
	for _, t := range turns {
		due = append(due, fmt.Sprintf("%s (%s)", t.Test.Name, t.Reason))
	}
	p.sayf("ci: %d of %d slow e2e tests ran in the time that was left: %s", len(ran), len(p.In(tiers.Rotation)), orNone(did))
	p.sayf("ci: due next: %s", orNone(due[:min(len(due), dueShown)]))
	once, err := p.lines(reportOnce)
	if err != nil {
		return err
	}
	for _, test := range once {
		p.sayf("ci: FLAKY: %s failed, and passed when it ran once more", test[0])
	}
	if err := p.accountFailed(); err != nil {
		return err
	}
	said, err := p.lines(reportSaid)
	if err != nil {
		return err
	}
	for _, line := range said {
		p.sayf("ci: %s: %s", line[0], line[1])
	}
	return nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// clock prints minutes and seconds, as in 61:05.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
