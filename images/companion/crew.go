// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	contract "github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew"
)

// crewCmd is the first process of a pod of a training.
type crewCmd struct {
	Plan    string   `default:"/capstan/plan/plan.json" help:"File with what the crew of the run follows."                 type:"path"`
	Index   int      `env:"JOB_COMPLETION_INDEX"        help:"Index of this pod."                                          required:""`
	Scratch string   `default:"/capstan/run"            help:"Folder of the pod for files in which ranks report progress." type:"path"`
	Command []string `arg:""                            help:"Program of a rank, and its arguments."                       optional:"" passthrough:""`
}

// exitError ends the program with a code, after last words of its own.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// Run until the run ends.
func (c *crewCmd) Run(ctx context.Context, stdout io.Writer, log *slog.Logger, all *cli) error {
	raw, err := os.ReadFile(filepath.Clean(c.Plan))
	if err != nil {
		return fmt.Errorf("cannot read the plan of the run: %w", err)
	}
	plan, err := contract.ParsePlan(raw)
	if err != nil {
		return err
	}
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	code, words := crew.Run(ctx, crew.Config{Plan: plan, Index: c.Index, Command: command, Scratch: c.Scratch, Out: stdout, Log: log})
	leave(all.TerminationLog, words)
	if code != 0 {
		return exitError{code: code}
	}
	return nil
}
