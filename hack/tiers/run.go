// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/tiers"
)

// errSlow is that no test failed but slow ones.
var errSlow = errors.New("only slow tests failed")

// noisy is how many tests of every change may fail for the noise of the machine. More failures are a fault, and repeating the tests would
// only delay the news.
const noisy = 3

// timeout of a run that no budget limits.
const unlimited = 3 * time.Hour

// A selection of tests for one cluster.
type selection struct {
	Nodes int    `help:"Nodes of the cluster."                                                           required:""`
	Only  string `help:"Pattern as for go test -run, in any tier. Default: what runs with every change." placeholder:"PATTERN"`
	Night bool   `help:"All of both tiers."`
}

// tests of the selection, and the occasion that the ledger records them by.
func (s *selection) tests(c *tiers.Catalogue) ([]tiers.Test, string, error) {
	all, occasion := c.In(tiers.Change), string(tiers.Change)
	if s.Night {
		all, occasion = c.Tests, tiers.Nightly
	}
	if s.Only != "" {
		var err error
		if all, err = c.Named(s.Only); err != nil {
			return nil, "", err
		}
		if !s.Night {
			occasion = tiers.Named
		}
	}
	return tiers.On(s.Nodes, all), occasion, nil
}

// flags of the test binary that select the tests.
func (s *selection) flags(c *tiers.Catalogue, tests []tiers.Test) ([]string, error) {
	if s.Only == "" {
		return []string{"-test.run=" + tiers.Only(tests)}, nil
	}
	named, err := c.Named(s.Only)
	if err != nil {
		return nil, err
	}
	flags := []string{"-test.run=" + s.Only}
	if others := slices.DeleteFunc(named, func(t tiers.Test) bool { return t.Nodes == s.Nodes }); len(others) > 0 {
		flags = append(flags, "-test.skip="+tiers.Only(others))
	}
	return flags, nil
}

type runCmd struct {
	selection

	CI      bool     `env:"CAPSTAN_CI" help:"A test that is skipped counts as failed."`
	Command []string `arg:""           help:"Test binary and what runs it."            passthrough:""`

	parallel int
	commit   string
}

// Run the selected tests, and after the tests of every change slow tests for as long as the budget lasts.
func (c *runCmd) Run(ctx context.Context, p *project) error {
	tests, occasion, err := c.tests(p.Catalogue)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(p.Clusters, func(k tiers.Cluster) bool { return k.Nodes == c.Nodes }); i >= 0 {
		c.parallel = p.Clusters[i].Parallel
	}
	if c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	if len(tests) == 0 || len(c.Command) == 0 {
		return fmt.Errorf("cannot run tests on %d nodes: there is no test or no command", c.Nodes)
	}
	flags, err := c.flags(p.Catalogue, tests)
	if err != nil {
		return err
	}
	d := tiers.DiffOf(ctx, p.root, p.Base, p.ledger())
	c.commit = d.Commit
	began := p.now()
	failed, err := c.do(ctx, p, tests, occasion, unlimited, flags)
	if c.Only == "" && !c.Night && len(failed) <= noisy {
		err = c.again(ctx, p, failed, occasion, p.Reserve(c.Nodes, p.ledger()), err)
	}
	p.account(partOf(c.Nodes, ""), p.now().Sub(began))
	if err != nil {
		return err
	}
	if c.Only != "" || c.Night {
		return nil
	}
	if p.Budget == 0 {
		p.sayf("slow tests: none run here, because CAPSTAN_TEST_BUDGET is not set; CI and make nightly run them (%s)", tiers.Page)
		return nil
	}
	began = p.now()
	err = c.rotate(ctx, p, d)
	p.account(partOf(c.Nodes, "slow "), p.now().Sub(began))
	if err != nil {
		return fmt.Errorf("%w: %w", errSlow, err)
	}
	return nil
}

func partOf(nodes int, kind string) string {
	return fmt.Sprintf("%se2e tests on %d %s", kind, nodes, map[bool]string{true: "node", false: "nodes"}[nodes == 1])
}

// rotate slow tests for as long as there is time for one more.
func (c *runCmd) rotate(ctx context.Context, p *project, d tiers.Diff) error {
	ran := map[string]bool{}
	for first := true; ; first = false {
		s := p.situation(d)
		spent, reserve := s.Now.Sub(time.Unix(p.Started, 0)), p.Reserve(c.Nodes, s.Ledger)
		left := p.Budget - spent - reserve
		turns := slices.DeleteFunc(p.Order(s), func(t tiers.Turn) bool { return ran[t.Test.Name] || p.before(t.Test.Nodes, c.Nodes) })
		// What is picked for a cluster to come keeps its time.
		picked := p.Pick(turns, left)
		if first {
			p.sayf("slow tests: of the budget of %s, %s are spent, and what follows needs up to %s",
				p.Budget, spent.Round(time.Second), reserve.Round(time.Second))
			p.printPlan(d, s, turns, picked, left)
		}
		var tests []tiers.Test
		for _, t := range picked {
			if t.Test.Nodes == c.Nodes {
				tests = append(tests, t.Test)
				ran[t.Test.Name] = true
			}
		}
		if len(tests) == 0 {
			return nil
		}
		failed, err := c.do(ctx, p, tests, string(tiers.Rotation), p.left(reserve), []string{"-test.run=" + tiers.Only(tests)})
		if err = c.again(ctx, p, failed, string(tiers.Rotation), reserve, err); err != nil {
			return err
		}
	}
}

// again runs the tests that failed once more, when time is left for it, and returns the error of that run instead of the first one. A busy
// machine must not stop a change. The closing lines name each test that failed first: it must be corrected all the same.
func (c *runCmd) again(ctx context.Context, p *project, failed []tiers.Test, occasion string, reserve time.Duration, first error) error {
	left := p.left(reserve)
	if len(failed) == 0 || left <= 0 {
		return first
	}
	p.sayf("%d tests failed and run once more: %s", len(failed), namesOf(failed))
	_, err := c.do(ctx, p, failed, occasion, left, []string{"-test.run=" + tiers.Only(failed)})
	if err == nil {
		p.accountSecond(failed)
	}
	return err
}

// left is the time until CI has to end, without what the clusters that follow need.
func (p *project) left(reserve time.Duration) time.Duration {
	if p.Limit == 0 {
		return unlimited
	}
	return p.Limit - p.now().Sub(time.Unix(p.Started, 0)) - reserve
}

func namesOf(tests []tiers.Test) string {
	names := make([]string, 0, len(tests))
	for _, t := range tests {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// before says whether the cluster with this many nodes comes before the other, and so is gone.
func (p *project) before(nodes, other int) bool {
	at := func(n int) int {
		return slices.IndexFunc(p.Clusters, func(k tiers.Cluster) bool { return k.Nodes == n })
	}
	return at(nodes) < at(other)
}

// do runs tests by one process, records each, and fails for each that did not pass. It returns those that failed, unless something else
// went wrong, too.
func (c *runCmd) do(
	ctx context.Context, p *project, tests []tiers.Test, occasion string, timeout time.Duration, flags []string,
) ([]tiers.Test, error) {
	watch := &results{out: p.out, now: p.now}
	args := append(slices.Clone(c.Command), "-test.v", "-test.timeout="+timeout.Round(time.Second).String(), fmt.Sprintf("-test.parallel=%d", c.parallel))
	args = append(args, flags...)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = watch, os.Stderr
	cmd.Dir = p.root
	// The tests end, and with them what they started.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	ended := cmd.Run()

	var runs []tiers.Run
	var failed []tiers.Test
	var bad []string
	for _, t := range tests {
		r, ok := watch.byTest[t.Name]
		if !ok {
			bad = append(bad, t.Name+" did not start")
			continue
		}
		r.Commit, r.Occasion = c.commit, occasion
		runs = append(runs, r)
		if r.Result != tiers.Passed && (r.Result != tiers.Skipped || c.CI) {
			bad = append(bad, t.Name+" "+r.Result)
			if r.Result == tiers.Failed {
				failed = append(failed, t)
			}
			p.sayf("%s %s. The last lines of its log:", t.Name, r.Result)
			for _, line := range watch.said[t.Name] {
				p.sayf("  %s", line)
			}
			p.accountSaid(t.Name, watch.said[t.Name])
		}
	}
	if len(failed) != len(bad) {
		failed = nil
	}
	if ctx.Err() == nil && tiers.Whole(c.Only) {
		if err := tiers.Record(p.Ledger, runs...); err != nil {
			p.sayf("tiers: %v", err)
		}
		if occasion == string(tiers.Rotation) {
			p.accountSlow(runs)
		}
	}
	if ended != nil {
		ended = fmt.Errorf("cannot finish the tests: %w", ended)
	}
	if len(bad) > 0 {
		ended = errors.Join(ended, errors.New(strings.Join(bad, ", ")))
	}
	return failed, cmp.Or(ctx.Err(), ended)
}
