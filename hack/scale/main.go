// SPDX-License-Identifier: Apache-2.0

// Command scale measures Capstan with many Algorithms (make scale N=100), and with Databases, Buckets and Credentials beside them. It starts a control plane without nodes, Crossplane's core, and
// function and provider of this tree, all as processes of one machine beside other clusters. KWOK stands for the controllers of Kubernetes and
// for the Gateway: each Deployment is available at once, so that nothing but Crossplane and Capstan takes time.
//
// It creates Algorithms, waits until all are Ready and all is quiet, and counts the requests of an idle time. Then it edits some, alone and beside a
// tenant who edits all the time, restarts everything, revises the Composition, and deletes all. It reports for each phase how long it took, what
// each component used, and how many requests it sent.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/cluster"
	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

type cli struct {
	Run   runCmd   `cmd:"" default:"withargs"                                          help:"Measure."`
	Delay delayCmd `cmd:"" help:"Give answers of the API server late; started by run." hidden:""`
}

type runCmd struct {
	Algorithms   int           `default:"100"                                                                               help:"Algorithms of tenants."                                                  short:"n"`
	Databases    int           `default:"0"                                                                                 help:"Databases of tenants. Their pods are simulated: see docs/sizing.md."`
	Buckets      int           `default:"0"                                                                                 help:"Buckets of tenants, on an S3 server beside the API server."`
	Credentials  int           `default:"0"                                                                                 help:"Credentials of tenants."`
	Noisy        int           `default:"0"                                                                                 help:"Algorithms of one tenant who edits ten a second while others edit, too."`
	Rate         float64       `default:"10"                                                                                help:"Objects that are created a second."`
	PerNamespace int           `default:"20"                                                                                help:"Objects of a kind in a namespace."`
	Idle         time.Duration `default:"5m"                                                                                help:"How long no tenant does anything, while requests are counted."`
	Timeout      time.Duration `default:"30m"                                                                               help:"The longest that a phase may take."`
	Late         time.Duration `default:"0"                                                                                 help:"How much later answers of the API server reach core and provider."`
	CoreMemory   int           `default:"1024"                                                                              help:"MiB of memory that core has; Crossplane's chart gives it 1024."`
	CoreFlag     []string      `help:"Flags of Crossplane's core, such as --max-reconcile-rate=200."                        sep:"none"`
	ProviderFlag []string      `help:"Flags of the provider, such as --max-look-rate=400."                                  sep:"none"`
	Name         string        `default:"capstan-scale"                                                                     help:"Name of the cluster, which is removed before and after."`
	Keep         bool          `help:"Leave the cluster, for a look: hack/capstan-cluster --name NAME exec, and then down."`
	Output       string        `help:"Folder of the report. Default: _output/scale."`
}

// The thread that a program begins with is never another goroutine's: one that enters a cluster's network stays there, and this thread cannot
// end before the program. The cluster would then not be removed, because this program seems to be inside.
func init() { //nolint:gochecknoinits // Only here is the main goroutine sure to have that thread.
	runtime.LockOSThread()
}

func main() {
	// The first process of a machine is this program, too, but no command for people.
	if len(os.Args) == 3 && os.Args[1] == machine.InitCommand {
		exit(machine.Init(os.Args[2]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := kong.Parse(&cli{}, kong.Name("scale"), kong.Description("Measures Capstan with many Algorithms."),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(progress.New(os.Stderr)))
	exit(command.Run())
}

func exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "scale:", err)
	os.Exit(1)
}

// Run all phases. What was measured before a failure is reported, too.
func (c runCmd) Run(ctx context.Context, p *progress.Printer) (err error) {
	if c.Algorithms < 1 || c.PerNamespace < 1 || c.Rate <= 0 {
		return errors.New("cannot measure nothing: algorithms, objects of a namespace and their rate must be positive")
	}
	if min(c.Databases, c.Buckets, c.Credentials, c.Noisy) < 0 || c.CoreMemory < 1 {
		return errors.New("cannot have less than nothing: databases, buckets, credentials and noisy must not be negative, and core needs memory")
	}
	root, err := build.Repository()
	if err != nil {
		return err
	}
	target, err := cluster.New(c.Name, filepath.Join(root, "hack"))
	if err != nil {
		return err
	}
	if !c.Keep {
		defer func() { err = errors.Join(err, target.Down(p)) }()
	}
	parts := plane{root: root, late: c.Late, s3: c.Buckets > 0, coreMemory: c.CoreMemory, coreFlags: c.CoreFlag, providerFlags: c.ProviderFlag}
	b, err := target.UpBare(ctx, p, parts.tools(), func(b cluster.Bare) ([]machine.Component, error) { return parts.components(ctx, b) })
	if err != nil {
		return err
	}
	if err := p.Step("install Capstan", nil, func() error { return install(ctx, b, parts) }); err != nil {
		return err
	}
	// Watches end before the cluster does.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := newRun(ctx, c, b, p)
	if err != nil {
		return err
	}
	failed := r.all(ctx)
	_, _ = fmt.Fprint(os.Stdout, r.report.table())
	if c.Output == "" {
		c.Output = filepath.Join(root, "_output", "scale")
	}
	return errors.Join(failed, r.report.write(c.Output))
}
