// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capstan-dev/capstan/plugin/internal/bundle"
	"github.com/capstan-dev/capstan/plugin/internal/cluster"
	"github.com/capstan-dev/capstan/plugin/internal/doctor"
	"github.com/capstan-dev/capstan/plugin/internal/screen"
)

func (p *plugin) doctor() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Find what this cluster lacks for Capstan; exit code 1 when something is missing",
		GroupID: groupSee, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.connect()
			if err != nil {
				return err
			}
			findings := doctor.Examine(cmd.Context(), c)
			if err := report(cmd.OutOrStdout(), findings, quiet); err != nil {
				return err
			}
			missing := 0
			for _, f := range findings {
				if f.Level == doctor.Missing {
					missing++
				}
			}
			if missing > 0 {
				return fmt.Errorf("%d things are missing", missing)
			}

			return nil
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "Leave out what is fine")

	return cmd
}

// report findings, each with what to do.
func report(out io.Writer, findings []doctor.Finding, quiet bool) error {
	wide := 0
	for _, f := range findings {
		wide = max(wide, len(f.Subject))
	}
	for _, f := range findings {
		if quiet && f.Level == doctor.OK {
			continue
		}
		if _, err := fmt.Fprintf(out, "%-8s %-*s  %s\n", f.Level, wide, f.Subject, f.Found); err != nil {
			return fmt.Errorf("cannot write: %w", err)
		}
		if f.Remedy != "" {
			sayf(out, "%-8s %-*s  → %s", "", wide, "", f.Remedy)
		}
	}

	return nil
}

func (p *plugin) supportBundle() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "support-bundle [algorithm|database] NAME", Short: "Write an archive for people who help, without Secrets",
		Long: "Write an archive with the object, what is composed for it, its pods, logs, events and the findings of doctor.\n\n" +
			"Secrets are never read. Values of environment variables, and what looks like a credential elsewhere, are left out.\n" +
			"Logs may hold data of yours: read the archive before you pass it on.",
		GroupID: groupSee, Args: cobra.RangeArgs(1, 2), ValidArgsFunction: p.names(algorithm, database),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.connect()
			if err != nil {
				return err
			}
			k, name, err := find(cmd, c, args)
			if err != nil {
				return err
			}
			folder := fmt.Sprintf("%s-%s-%s", k, name, p.now().UTC().Format("20060102-150405"))
			if path == "" {
				path = folder + ".tar.gz"
			}
			b, err := p.collect(cmd.Context(), c, k, name)
			if err != nil {
				return err
			}
			// Other users of this machine cannot read it, and an existing file is never replaced.
			f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // The user names it.
			if err != nil {
				return fmt.Errorf("cannot create the archive: %w: choose another file with --output", err)
			}
			if err := errors.Join(b.Write(f, folder, p.now()), f.Close()); err != nil {
				return err
			}
			sayf(cmd.OutOrStdout(), "%s has %d files. Read it before you pass it on: logs may hold data of yours.", path, len(b.Paths()))

			return nil
		},
	}
	cmd.Flags().StringVarP(&path, "output", "o", "", "File to write. Default: KIND-NAME-TIME.tar.gz")

	return cmd
}

// collect a bundle with what people would look at first.
func (p *plugin) collect(ctx context.Context, c *cluster.Cluster, k kind, name string) (*bundle.Bundle, error) {
	resource := cluster.Algorithms
	if k == database {
		resource = cluster.Databases
	}
	running, err := pods(ctx, c, k, name)
	if err != nil {
		return nil, err
	}
	b, err := bundle.Collect(ctx, c, resource, name, running)
	if err != nil {
		return nil, err
	}
	v, err := p.look(ctx, c, k, name)
	if err != nil {
		return nil, err
	}
	b.Add("status.txt", strings.Join(screen.Plain(v.Draw(plainColumns)), "\n")+"\n")
	var text strings.Builder
	fmt.Fprintf(&text, "kubectl-capstan %s\n\n", version)
	if err := report(&text, doctor.Examine(ctx, c), false); err != nil {
		return nil, err
	}
	b.Add("doctor.txt", text.String())

	return b, nil
}
