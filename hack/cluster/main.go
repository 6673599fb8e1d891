// SPDX-License-Identifier: Apache-2.0

// Command cluster runs a real Kubernetes with Crossplane on this machine, without Docker, inside namespaces that nothing
// can leave. It is called by the script hack/capstan-cluster, which builds it when its source has changed:
//
//	hack/capstan-cluster up                       start it (NODES=3 or --nodes 3 for three nodes), wait until all is ready;
//	                                              --core: until a first Algorithm can be served, and the next up does the rest
//	hack/capstan-cluster add-ons [NAME]           install what has changed of the add-ons into the cluster that runs; by name also
//	                                              those that only a test needs, as in kueue
//	hack/capstan-cluster status                   which machines run; --leftovers: what is on this machine, fails if anything
//	hack/capstan-cluster exec -- CMD ARGS         run a command in the cluster's network, with KUBECONFIG set and with kubectl
//	                                              and crossplane (the command line) in PATH
//	hack/kubectl get pods -A                      the same as exec -- kubectl
//	hack/capstan-cluster env                      the variables that exec sets, to be read by a shell
//	hack/capstan-cluster logs [COMPONENT] [-f]    logs of etcd, apiserver, kubelet, …
//	hack/capstan-cluster cut|rejoin NODE          take a node (a, b or c) off the network, put it back
//	hack/capstan-cluster block|unblock ADDRESS    have the API server ignore the address of a pod, or answer it again
//	hack/capstan-cluster unplug|plug NODE         kill everything on a node at once, boot it again
//	hack/capstan-cluster down                     remove it; programs and images stay in the cache, but with --all
//
// Inside (exec) the registry is registry.localhost:5000, without TLS. Test pods can use the image in CAPSTAN_BUSYBOX (its
// wget crashes when given -T; write 'timeout 3 wget').
// Services can be reached by address and as NAME.NAMESPACE.svc.cluster.local. CAPSTAN_AUDIT_LOG is the API server's audit
// log, CAPSTAN_CROSSPLANE the program of Crossplane's core. Two clusters can run side by side: --name, or CAPSTAN_CLUSTER.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/hack/internal/cluster"
	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

type cli struct {
	Name   string `default:"capstan"  env:"CAPSTAN_CLUSTER"                 help:"Name of the cluster."`
	Source string `env:"CAPSTAN_HACK" help:"Folder hack of the repository." required:""                 type:"existingdir"`

	Up      upCmd      `cmd:"" help:"Start the cluster and wait until everything is ready."`
	AddOns  addOnsCmd  `cmd:"" help:"Install what has changed of the add-ons into the cluster that runs."`
	Down    downCmd    `cmd:"" help:"Remove the cluster; programs and images stay in the cache, but with --all."`
	Status  statusCmd  `cmd:"" help:"Show the machines of the cluster."`
	Logs    logsCmd    `cmd:"" help:"Show logs of the cluster's components."`
	Exec    execCmd    `cmd:"" help:"Run a command inside the cluster's network."`
	Env     envCmd     `cmd:"" help:"Print the variables that describe the cluster."`
	Build   buildCmd   `cmd:"" help:"Only build the programs."`
	Cut     cutCmd     `cmd:"" help:"Take a node off the network."`
	Rejoin  rejoinCmd  `cmd:"" help:"Put a node back on the network."`
	Block   blockCmd   `cmd:"" help:"Have the API server answer no more to an address, such as the address of a pod."`
	Unblock unblockCmd `cmd:"" help:"Have the API server answer an address again."`
	Unplug  unplugCmd  `cmd:"" help:"Kill everything on a node at once."`
	Plug    plugCmd    `cmd:"" help:"Boot a node that was unplugged."`
	Freeze  freezeCmd  `cmd:"" help:"Stop a component of the control plane without ending it, as in apiserver."`
	Thaw    thawCmd    `cmd:"" help:"Let a frozen component continue."`
}

func main() {
	// The first process of a machine is this program, too, but no command for people.
	if len(os.Args) == 3 && os.Args[1] == machine.InitCommand {
		exit(machine.Init(os.Args[2]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	command := kong.Parse(&c,
		kong.Name("capstan-cluster"),
		kong.Description("A real Kubernetes with Crossplane on this machine, inside namespaces that nothing can leave."),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(progress.New(os.Stderr)),
	)
	target, err := cluster.New(c.Name, c.Source)
	if err == nil {
		err = command.Run(target)
	}
	exit(err)
}

func exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "capstan-cluster:", err)
	os.Exit(1)
}

type upCmd struct {
	Nodes int  `default:"0"                                                                                       env:"NODES" help:"Number of nodes, 1 to 3. Default: as many as there are when it runs, and one when it does not."`
	Core  bool `help:"Return as soon as a first Algorithm can be served. The next up installs the other add-ons."`
}

func (u upCmd) Run(ctx context.Context, c *cluster.Cluster, p *progress.Printer) error {
	return c.Up(ctx, u.Nodes, u.Core, p)
}

type addOnsCmd struct {
	Names []string `arg:"" help:"Names of add-ons, as in kueue, which only some tests need. Default: all usual ones." optional:""`
}

func (a addOnsCmd) Run(ctx context.Context, c *cluster.Cluster, p *progress.Printer) error {
	return c.AddOns(ctx, a.Names, p)
}

type downCmd struct {
	All bool `help:"Remove programs and images in the cache, too, and say what stays on this machine."`
}

func (d downCmd) Run(ctx context.Context, c *cluster.Cluster, p *progress.Printer) error {
	if d.All {
		return c.DownAll(ctx, p)
	}
	return c.Down(p)
}

type statusCmd struct {
	Leftovers bool `help:"List everything of the cluster on this machine, and fail if there is anything."`
}

func (s statusCmd) Run(ctx context.Context, c *cluster.Cluster) error {
	if !s.Leftovers {
		return c.Status(ctx, os.Stdout)
	}
	left, err := c.Leftovers()
	if err != nil {
		return err
	}
	if len(left) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(os.Stdout, strings.Join(left, "\n"))
	return fmt.Errorf("cannot call this machine clean: %d leftovers of cluster %q: run 'down'", len(left), c.Name)
}

type logsCmd struct {
	Component string `arg:""                           help:"Component, as in apiserver; all when absent." optional:""`
	Follow    bool   `help:"Print lines as they come." short:"f"`
	Lines     int    `default:"100"                    help:"Lines of each log to begin with."             short:"n"`
}

func (l logsCmd) Run(ctx context.Context, c *cluster.Cluster) error {
	files, err := c.LogFiles(l.Component)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("cannot find a log of %q: is the cluster up?", l.Component)
	}
	args := []string{"-n", strconv.Itoa(l.Lines)}
	if l.Follow {
		args = append(args, "-F")
	}
	tail := exec.CommandContext(ctx, "tail", append(args, files...)...)
	tail.Stdout, tail.Stderr = os.Stdout, os.Stderr
	if err := tail.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot read %s: %w", filepath.Dir(files[0]), err)
	}
	return nil
}

type execCmd struct {
	Command []string `arg:"" help:"The command and its arguments." passthrough:""`
}

func (e execCmd) Run(ctx context.Context, c *cluster.Cluster) error {
	args := e.Command
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("cannot run nothing: add -- and a command")
	}
	return c.Exec(ctx, args)
}

type envCmd struct{}

func (envCmd) Run(ctx context.Context, c *cluster.Cluster) error {
	vars, err := c.Environment(ctx)
	if err != nil {
		return err
	}
	for _, v := range vars {
		_, _ = fmt.Fprintf(os.Stdout, "export %s=%q\n", v.Name, v.Value)
	}
	return nil
}

type buildCmd struct{}

func (buildCmd) Run(ctx context.Context, c *cluster.Cluster, p *progress.Printer) error {
	return c.Build(ctx, p)
}

type nodeArg struct {
	Node string `arg:"" help:"Letter of the node: a, b or c."`
}

type (
	cutCmd    nodeArg
	rejoinCmd nodeArg
	unplugCmd nodeArg
	plugCmd   nodeArg
)

func (n cutCmd) Run(ctx context.Context, c *cluster.Cluster) error    { return c.Cut(ctx, n.Node) }
func (n rejoinCmd) Run(ctx context.Context, c *cluster.Cluster) error { return c.Rejoin(ctx, n.Node) }
func (n unplugCmd) Run(c *cluster.Cluster) error                      { return c.Unplug(n.Node) }
func (n plugCmd) Run(ctx context.Context, c *cluster.Cluster) error   { return c.Plug(ctx, n.Node) }

type addressArg struct {
	Address string `arg:"" help:"IP address, as in 198.19.1.7."`
}

type (
	blockCmd   addressArg
	unblockCmd addressArg
)

func (a blockCmd) Run(ctx context.Context, c *cluster.Cluster) error { return c.Block(ctx, a.Address) }
func (a unblockCmd) Run(ctx context.Context, c *cluster.Cluster) error {
	return c.Unblock(ctx, a.Address)
}

type componentArg struct {
	Component string `arg:"" help:"Component of the control plane, as in apiserver."`
}

type (
	freezeCmd componentArg
	thawCmd   componentArg
)

func (f freezeCmd) Run(c *cluster.Cluster) error { return c.Freeze(f.Component) }
func (t thawCmd) Run(c *cluster.Cluster) error   { return c.Thaw(t.Component) }
