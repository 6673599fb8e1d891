// SPDX-License-Identifier: Apache-2.0

// Command render prints what Crossplane would apply for a composite resource, without a cluster and without Docker: the
// official CLI runs the real core binary as render engine and calls our function, which runs as a local process.
//
//	go run ./render examples/algorithm/basic              one scenario, to stdout
//	go run ./render ../examples/algorithm/canary-simulated  a rollout over time, from what was recorded
//	go run ./render --steady examples/database/basic      where a new one ends, in stages
//	go run ./render --check ../examples/*/*               compare every scenario with its want.yaml
//	go run ./render --update ../examples/*/*              write them again
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

type command struct {
	Scenarios []string `arg:""                                                                                                      help:"Folders with an xr.yaml (and observed/, required/, simulation.yaml), or one file with a composite resource." type:"existingpath"`
	Observed  string   `help:"Folder of composed objects as observed, for a single scenario."                                       type:"existingdir"`
	Required  string   `help:"Folder of required objects (EnvironmentConfig), for a single scenario."                               type:"existingdir"`
	Now       string   `default:"2026-01-01T00:00:00Z"                                                                              help:"The time that the function gets, so that the same input gives the same output."`
	Steady    bool     `help:"Show where a new composite resource ends, in stages, with what was composed taken as made and ready."`
	Check     bool     `help:"Compare each scenario with its want.yaml instead of printing it."                                     xor:"mode"`
	Update    bool     `help:"Write the want.yaml of each scenario instead of printing it."                                         xor:"mode"`
}

func main() {
	var cmd command
	kong.Parse(&cmd, kong.Description("Print what Crossplane would apply for a composite resource."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := cmd.run(ctx, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func (c *command) run(ctx context.Context, stdout, stderr io.Writer) error {
	scenarios, err := c.scenarios()
	if err != nil {
		return err
	}
	root, err := build.Repository()
	if err != nil {
		return err
	}
	r, err := newRenderer(ctx, root, c.Now, progress.New(stderr))
	if err != nil {
		return err
	}
	defer r.close()

	var failed []error
	for _, s := range scenarios {
		if err := c.one(ctx, r, s, stdout); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// one scenario: its rendering, or where it ends. Where both have golden files, both are compared or written.
func (c *command) one(ctx context.Context, r *renderer, s scenario, stdout io.Writer) error {
	golden := (c.Check || c.Update) && s.steady != ""
	if !c.Steady {
		out, err := r.show(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if err := c.deliver(s, "want.yaml", out, stdout); err != nil || !golden {
			return err
		}
	}
	out, err := r.steady(ctx, s)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return c.deliver(s, fileSteady, out, stdout)
}

// show what a scenario becomes: at one moment, or over time.
func (r *renderer) show(ctx context.Context, s scenario) ([]byte, error) {
	if s.simulation != "" {
		return r.simulate(ctx, s)
	}
	return r.render(ctx, s, r.now)
}

// deliver prints, compares or writes one rendering.
func (c *command) deliver(s scenario, file string, out []byte, stdout io.Writer) error {
	want := filepath.Join(s.name, file)
	switch {
	case c.Update:
		return os.WriteFile(want, out, 0o644)
	case c.Check:
		golden, err := os.ReadFile(want)
		if err != nil {
			return fmt.Errorf("cannot read the golden render: %w: `make golden` writes it", err)
		}
		if !bytes.Equal(golden, out) {
			return fmt.Errorf("%s differs from what is rendered now:\n%s\nread the change, then `make golden`", want, diff(golden, out))
		}
		return nil
	}
	_, err := stdout.Write(out)
	return err
}
