// SPDX-License-Identifier: Apache-2.0

// Command failover hits the leader of a PostgreSQL that Capstan or CloudNativePG runs with faults, while clients on all nodes write, and
// reports how long each fault stopped their writes and how many acknowledged rows were lost (docs/comparison-cloudnative-pg.md).
//
//	hack/capstan-cluster exec -- hack/failover/compare VERSION
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/hack/internal/controlplane"
	"github.com/capstan-dev/capstan/hack/internal/image"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

type cli struct {
	Run   runCmd   `cmd:"" help:"Run the faults with one tool, and print one line of JSON for each and a table at the end."`
	Image imageCmd `cmd:"" help:"Push the image of CloudNativePG's operator to the registry of the cluster, and print its name."`
}

type runCmd struct {
	Tool    string        `arg:""                                                                          enum:"capstan,cloudnative-pg"                                                      help:"What runs PostgreSQL: capstan or cloudnative-pg."`
	Version string        `help:"Version of Capstan's images, which both run: as make packages made them." required:""`
	Cluster string        `help:"The command hack/capstan-cluster."                                        required:""`
	Rounds  int           `default:"3"                                                                     help:"How often each fault strikes."`
	Lasting time.Duration `default:"90s"                                                                   help:"How long a node is down, and how long nothing runs that manages PostgreSQL."`
	Only    string        `help:"Only faults that have this in their names, such as node."`
	Timeout time.Duration `default:"10m"                                                                   help:"The longest until all members follow again."`
}

type imageCmd struct {
	Program string `arg:"" help:"The operator, compiled."`
	Tag     string `arg:"" help:"Tag of the image."`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := kong.Parse(&cli{}, kong.Name("failover"), kong.Description("Compares failover of Capstan and CloudNativePG."),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(progress.New(os.Stderr)))
	return command.Run() //nolint:wrapcheck // The errors of the commands say what failed.
}

// Run pushes the image. The operator finds programs for pods by the name of their platform.
func (c imageCmd) Run(ctx context.Context) error {
	const platform = "amd64"
	registry := &image.Registry{Host: controlplane.RegistryName}
	ref, err := registry.Ensure(ctx, "cloudnative-pg", c.Tag, image.Spec{
		Platform: "linux/" + platform, Entrypoint: []string{"/manager"}, User: "65532",
		Files: []image.File{
			{Path: "/operator/manager_" + platform, Mode: 0o755, Source: c.Program},
			{Path: "/manager", Link: "operator/manager_" + platform},
		},
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, ref); err != nil {
		return fmt.Errorf("cannot print the name of the image: %w", err)
	}
	return nil
}

// Run all faults. What was measured before a failure is printed, too.
func (c runCmd) Run(ctx context.Context, p *progress.Printer) error {
	r := &trial{kubectl: kubectl{namespace: "failover-" + c.Tool}, tool: tools()[c.Tool], command: c, progress: p}
	defer r.remove()
	if err := r.create(ctx); err != nil {
		return err
	}
	all, failed := r.rounds(ctx, json.NewEncoder(os.Stdout))
	rows, err := r.account(ctx)
	if err != nil {
		return errors.Join(failed, err)
	}
	if _, err := fmt.Fprint(os.Stdout, table(c.Tool, all, rows)); err != nil {
		return errors.Join(failed, fmt.Errorf("cannot print the table: %w", err))
	}
	return failed
}

// rounds of all faults, until one fails. What clients saw of that one is among the results.
func (r *trial) rounds(ctx context.Context, out *json.Encoder) ([]result, error) {
	var all []result
	for round := range r.command.Rounds {
		for _, f := range r.faults() {
			if !strings.Contains(f.name, r.command.Only) {
				continue
			}
			got, err := r.befall(ctx, f)
			got.Round = round + 1
			if err == nil || len(got.Gaps) > 0 {
				all = append(all, got)
				if err := out.Encode(got); err != nil {
					return all, fmt.Errorf("cannot print a result: %w", err)
				}
			}
			if err != nil {
				return all, fmt.Errorf("cannot measure %q in round %d: %w", f.name, round+1, err)
			}
		}
	}
	return all, nil
}
