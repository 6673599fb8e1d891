// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	contract "github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/images/companion/internal/runner"
)

// runCmd is the first process of a pod of a pipeline.
type runCmd struct {
	Plan  string   `default:"/capstan/plan/plan.json" help:"File with what the pod follows."                                     type:"path"`
	Index int      `default:"0"                       env:"JOB_COMPLETION_INDEX"                                                 help:"Index of this pod."`
	Job   string   `env:"CAPSTAN_JOB"                 help:"Name of the Job of this pod."`
	Args  []string `arg:""                            help:"Program and its arguments, or arguments of the program of the plan." optional:""               passthrough:""`
}

// Run until the program ends for good.
func (c *runCmd) Run(ctx context.Context, stdout io.Writer, log *slog.Logger, all *cli) error {
	raw, err := os.ReadFile(filepath.Clean(c.Plan))
	if err != nil {
		return fmt.Errorf("cannot read the plan of the run: %w", err)
	}
	plan, err := contract.ParsePlan(raw)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("cannot read the name of this host: %w", err)
	}
	args := c.Args
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	code, words := runner.Run(ctx, runner.Config{Plan: plan, Job: c.Job, Host: host, Index: c.Index, Args: args, Out: stdout, Log: log})
	leave(all.TerminationLog, words)
	if code != 0 {
		return exitError{code: code}
	}
	return nil
}
