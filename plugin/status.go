// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	appsv1 "k8s.io/api/apps/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/plugin/internal/cluster"
	"github.com/capstan-dev/capstan/plugin/internal/screen"
)

// every is how often the cluster is polled.
const every = time.Second

// A watching is how long to watch.
type watching struct {
	// until are the phases at which it ends. Those from before the latest edit do not count.
	until []string
	// after is a phase that has to end before the others count, for an edit whose effect takes a moment.
	after string
	// limit of the time. With until it is an error when the time is over.
	limit time.Duration
}

func (p *plugin) status() *cobra.Command {
	var watch bool
	var w watching
	cmd := &cobra.Command{
		Use:   "status [algorithm|database] [NAME]",
		Short: "Show an Algorithm or a Database on one screen, or all of the namespace in a table",
		Example: "  kubectl capstan status\n  kubectl capstan status orders-db --watch\n" +
			"  kubectl capstan status algorithm reco --watch --until Stable,RolledBack --for 10m",
		GroupID: groupSee, Args: cobra.MaximumNArgs(2), ValidArgsFunction: p.names(algorithm, database),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.connect()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return table(cmd.Context(), cmd.OutOrStdout(), c)
			}
			k, name, err := find(cmd, c, args)
			if err != nil {
				return err
			}
			if err := w.check(k); err != nil {
				return err
			}
			columns := width(os.Stdout)
			look := func(ctx context.Context) (screen.View, error) { return p.look(ctx, c, k, name) }
			if watch || len(w.until) > 0 {
				return w.follow(cmd.Context(), cmd.OutOrStdout(), columns, look)
			}
			v, err := look(cmd.Context())
			if err != nil {
				return err
			}

			return draw(cmd.OutOrStdout(), v, columns)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&watch, "watch", "w", false, "Draw the screen each second; without a terminal, print a line for each change")
	flags.StringSliceVar(&w.until, "until", nil, "Watch until one of these phases: of the rollout, or of the Database. Phases from before the latest edit do not count")
	flags.StringVar(&w.after, "after", "", "Phase that has to end before the phases of --until count")
	flags.DurationVar(&w.limit, "for", 0, "How long to watch at most. With --until it is a failure when the time is over")

	return cmd
}

// phases that can be waited for.
var phases = map[kind][]string{
	algorithm: words(v1alpha1.RolloutBootstrapping, v1alpha1.RolloutStable, v1alpha1.RolloutPreparing, v1alpha1.RolloutMirroring, v1alpha1.RolloutStepping,
		v1alpha1.RolloutHolding, v1alpha1.RolloutPromoting, v1alpha1.RolloutBaking, v1alpha1.RolloutDraining, v1alpha1.RolloutRollingBack, v1alpha1.RolloutRolledBack),
	database: words(v1alpha1.DatabasePending, v1alpha1.DatabaseCreating, v1alpha1.DatabaseRunning, v1alpha1.DatabaseUpdating, v1alpha1.DatabaseDegraded,
		v1alpha1.DatabaseDown, v1alpha1.DatabaseHibernated),
}

func words[T ~string](all ...T) []string {
	list := make([]string, 0, len(all))
	for _, one := range all {
		list = append(list, string(one))
	}

	return list
}

// check that phases exist: one that does not would never come.
func (w watching) check(k kind) error {
	for _, phase := range append(slices.Clone(w.until), w.after) {
		if phase != "" && !slices.Contains(phases[k], phase) {
			return fmt.Errorf("%q is no phase of a %s: choose from %s", phase, k, strings.Join(phases[k], ", "))
		}
	}

	return nil
}

// plainColumns is the width without a terminal.
const plainColumns = 160

func draw(out io.Writer, v screen.View, columns int) error {
	lines := v.Draw(max(columns, 40))
	if columns == 0 {
		lines = screen.Plain(v.Draw(plainColumns))
	}
	if _, err := fmt.Fprintln(out, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}

	return nil
}

// look at an object.
func (p *plugin) look(ctx context.Context, c *cluster.Cluster, k kind, name string) (screen.View, error) {
	if k == database {
		d, err := c.Database(ctx, name)
		if err != nil {
			return nil, err
		}

		return screen.Database{Now: p.now(), Object: *d}, nil
	}
	a, err := c.Algorithm(ctx, name)
	if err != nil {
		return nil, err
	}
	v := screen.Algorithm{Now: p.now(), Object: *a}
	if v.Deployments, err = cluster.List[appsv1.Deployment](ctx, c, cluster.Deployments, observev1alpha1.LabelAlgorithm+"="+name); err != nil {
		return nil, err
	}
	analysis, err := c.Analysis(ctx, name)
	if err != nil {
		return nil, err
	}
	if analysis != nil {
		v.Canary = analysis.Status.AtProvider.Canary
	}

	return v, nil
}

// follow what is seen until the phase that is waited for. Without a width there is no screen.
func (w watching) follow(ctx context.Context, out io.Writer, columns int, look func(context.Context) (screen.View, error)) error {
	over := ctx
	if w.limit > 0 {
		var cancel context.CancelFunc
		over, cancel = context.WithTimeout(ctx, w.limit)
		defer cancel()
	}
	show := screen.Lines(out)
	if columns > 0 {
		show = screen.Over(out, columns)
	}
	began := time.Now()
	last := ""
	left := w.after == ""
	for {
		v, err := look(over)
		switch {
		case over.Err() != nil:
		case err != nil:
			last = err.Error()
			show(screen.Trouble{Err: err}, time.Since(began))
		default:
			phase, current := v.Phase()
			last = "it is " + phase
			show(v, time.Since(began))
			left = left || phase != w.after
			if left && current && slices.Contains(w.until, phase) {
				return nil
			}
		}
		select {
		case <-over.Done():
			if ctx.Err() == nil && len(w.until) > 0 {
				return exit{code: late, err: fmt.Errorf("not %s after %s: %s", strings.Join(w.until, " or "), w.limit, last)}
			}

			return nil
		case <-time.After(every):
		}
	}
}

// table of all of a namespace.
func table(ctx context.Context, out io.Writer, c *cluster.Cluster) error {
	algorithms, err := cluster.List[v1alpha1.Algorithm](ctx, c, cluster.Algorithms, "")
	if err != nil {
		return err
	}
	databases, err := cluster.List[v1alpha1.Database](ctx, c, cluster.Databases, "")
	if err != nil {
		return err
	}
	if len(algorithms)+len(databases) == 0 {
		_, err := fmt.Fprintf(out, "There are no Algorithms and no Databases in namespace %s.\n", c.Namespace)

		return err //nolint:wrapcheck // Of the terminal.
	}

	return aligned(out, screen.Table(algorithms, databases))
}

func aligned(out io.Writer, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}

	return nil
}

// width of the screen in columns, and 0 when there is none.
func width(f *os.File) int {
	if os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns == 0 {
		return 100
	}

	return columns
}
