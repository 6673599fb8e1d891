// SPDX-License-Identifier: Apache-2.0

// Command tiers decides which e2e tests run, runs them on a cluster that is up, and keeps account of it.
//
//	go run ./tiers table [--check]           write test/README.md from test/e2e/tiers.yaml
//	go run ./tiers plan [--left 25m]         print the order of slow tests, and which of them fit into a time
//	go run ./tiers names --nodes 1           print what would run on a cluster of one node
//	go run ./tiers run --nodes 1 -- COMMAND  run them by a test binary, then slow tests for as long as the budget lasts
//	go run ./tiers closing                   print where the time of a CI run went
//
// Run ends with status 3 when no test failed but slow ones.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/tiers"
)

// statusSlow is how run ends when no test failed but slow ones.
const statusSlow = 3

// options of every command.
type options struct {
	Base   string `env:"CAPSTAN_BASE"                                                                       help:"Commit with which the change is compared."`
	Ledger string `help:"File that records runs. Default: capstan/e2e-runs.tsv in the user's cache folder." type:"path"`
	Report string `env:"CAPSTAN_CI_REPORT"                                                                  help:"Folder that collects what the closing lines of CI say." type:"path"`

	Started int64         `env:"CAPSTAN_CI_STARTED"  help:"When CI began, in seconds since 1970."`
	Budget  time.Duration `env:"CAPSTAN_TEST_BUDGET" help:"How long CI may take with slow tests. Without it, none run."`
	Limit   time.Duration `env:"CAPSTAN_TEST_LIMIT"  help:"When CI ends a slow test that takes much longer than it should."`
}

type cli struct {
	options

	Table   tableCmd   `cmd:"" help:"Write the page that shows all tests."`
	Plan    planCmd    `cmd:"" help:"Print the order of slow tests."`
	Names   namesCmd   `cmd:"" help:"Print the names of tests."`
	Run     runCmd     `cmd:"" help:"Run tests."`
	Closing closingCmd `cmd:"" help:"Print where the time of CI went."`
}

// A project is the repository and what every command needs to know.
type project struct {
	*tiers.Catalogue
	options

	root string
	out  io.Writer
	now  func() time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var c cli
	command := kong.Parse(&c,
		kong.Name("tiers"),
		kong.Description("Decide which e2e tests run, and run them."),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	p, err := open(c.options)
	if err == nil {
		err = command.Run(p)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tiers:", err)
		if errors.Is(err, errSlow) {
			os.Exit(statusSlow)
		}
		os.Exit(1)
	}
}

func open(o options) (*project, error) {
	root, err := build.Repository()
	if err != nil {
		return nil, err
	}
	catalogue, err := tiers.Load(root)
	if err != nil {
		return nil, err
	}
	if o.Ledger == "" {
		if o.Ledger, err = tiers.LedgerFile(); err != nil {
			return nil, err
		}
	}
	return &project{Catalogue: catalogue, options: o, root: root, out: os.Stdout, now: time.Now}, nil
}

// sayf prints a line.
func (p *project) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

// ledger is what is readable of it: no test depends on it, so that it never fails one.
func (p *project) ledger() tiers.Ledger {
	l, err := tiers.ReadLedger(p.Ledger)
	if err != nil {
		p.sayf("tiers: %v", err)
	}
	return l
}

// situation of the tree, now.
func (p *project) situation(d tiers.Diff) tiers.Situation {
	return tiers.Situation{Now: p.now(), Commit: d.Commit, Touched: d.Files, Ledger: p.ledger()}
}

type tableCmd struct {
	Check bool `help:"Write nothing, fail when the page is not what it should be."`
}

func (c *tableCmd) Run(p *project) error {
	file := filepath.Join(p.root, tiers.Page)
	have, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot read the page of tests: %w", err)
	}
	want := p.Table()
	switch {
	case string(have) == want:
		return nil
	case c.Check:
		return fmt.Errorf("%s does not match %s: run make generate and commit the result", tiers.Page, tiers.File)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		return fmt.Errorf("cannot write the page of tests: %w", err)
	}
	p.sayf("wrote %s", tiers.Page)
	return nil
}

type namesCmd struct {
	selection
}

func (c *namesCmd) Run(p *project) error {
	tests, _, err := c.tests(p.Catalogue)
	for _, t := range tests {
		p.sayf("%s", t.Name)
	}
	return err
}

type planCmd struct {
	Left time.Duration `help:"Time that is left for slow tests. Default: what CI is expected to have."`
	At   time.Time     `format:"2006-01-02"                                                            help:"Day of the plan, as in 2026-11-23. Default: today."`
}

//nolint:unparam // The command line library asks for an error.
func (c *planCmd) Run(ctx context.Context, p *project) error {
	left := c.Left
	if left == 0 {
		left = time.Duration(p.SpareMinutes * float64(time.Minute))
	}
	if !c.At.IsZero() {
		p.now = func() time.Time { return c.At }
	}
	d := tiers.DiffOf(ctx, p.root, p.Base, p.ledger())
	s := p.situation(d)
	turns := p.Order(s)
	p.printPlan(d, s, turns, p.Pick(turns, left), left)
	return nil
}

// printPlan prints the order, and what of it fits.
func (p *project) printPlan(d tiers.Diff, s tiers.Situation, turns, picked []tiers.Turn, left time.Duration) {
	against := "nothing counts as touched: " + d.Because
	if d.Base != "" {
		against = fmt.Sprintf("%d files differ from %.10s (%s)", len(d.Files), d.Base, d.Because)
	}
	p.sayf("slow tests: %s, commit %.10s, %s; the ledger has %d runs", s.Now.UTC().Format(time.DateOnly), d.Commit, against, len(s.Ledger))
	p.sayf("slow tests: %s left for %d, and %d of them run:", max(0, left).Round(time.Second), len(turns), len(picked))
	runs := map[string]bool{}
	for _, t := range picked {
		runs[t.Test.Name] = true
	}
	for _, t := range turns {
		mark := "later"
		if runs[t.Test.Name] {
			mark = "runs "
		}
		p.sayf("  %s %s", mark, t)
	}
}
