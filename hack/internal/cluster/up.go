// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/addons"
	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/controlplane"
	"github.com/capstan-dev/capstan/hack/internal/host"
	"github.com/capstan-dev/capstan/hack/internal/image"
	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/netns"
	"github.com/capstan-dev/capstan/hack/internal/network"
	"github.com/capstan-dev/capstan/hack/internal/node"
	"github.com/capstan-dev/capstan/hack/internal/pki"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// startTimeout is how long the API server, and then the nodes, may take. Both take seconds on an idle machine.
const startTimeout = 3 * time.Minute

// client is the tool with Crossplane's command line, by which packages are installed.
const client = "crossplane-cli"

// boot names the programs without which no machine starts. The others are started by their machines as soon as they are in the
// cache.
func boot() []string { return []string{"etcd", "containerd", "runc", "kubernetes"} }

// Up starts the cluster and returns when everything on it is ready; with core, when a first Algorithm can be served. On a
// running cluster it installs what is missing. With 0 nodes it takes a running cluster as it is, and starts one of a single node
// otherwise.
func (c *Cluster) Up(ctx context.Context, nodes int, core bool, p *progress.Printer) error {
	nodes = c.size(nodes)
	plan, err := network.Plan(nodes)
	if err != nil {
		return err
	}
	if err := host.Check(c.Cache, nodes); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	running, err := c.running(nodes)
	if err != nil {
		return err
	}
	stages := running.missing(core)
	if len(stages) == 0 {
		p.Sayf("cluster %q is running already", c.Name)
		return nil
	}
	if err := host.Install(ctx, p); err != nil {
		return err
	}
	if err := host.CheckKernel(ctx); err != nil {
		return err
	}
	if err := c.install(ctx, plan, running.Core, stages, p); err != nil {
		return err
	}
	return c.writeState(state{Nodes: nodes, Core: true, Complete: !core})
}

// missing returns the add-ons that a cluster still needs: the core only, or all of them.
func (s state) missing(core bool) []addons.Stage {
	var stages []addons.Stage
	if !s.Core {
		stages = addons.Core()
	}
	if !core && !s.Complete {
		stages = append(stages, addons.Rest()...)
	}
	return stages
}

// install makes the programs that add-ons need, boots the machines unless they run, and installs the add-ons.
func (c *Cluster) install(ctx context.Context, plan []network.Node, running bool, stages []addons.Stage, p *progress.Printer) error {
	builder, programs, err := c.programs(ctx, p)
	if err != nil {
		return err
	}
	queue, err := builder.Start(ctx, p, needed(stages)...)
	if err != nil {
		return err
	}
	defer queue.Stop()
	if !running {
		if err := queue.Wait(ctx, boot()...); err != nil {
			return err
		}
		if err := c.boot(ctx, plan, builder, programs, p); err != nil {
			return err
		}
	}
	env, err := c.environment(plan, builder, programs)
	if err != nil {
		return err
	}
	if err := addons.Install(ctx, env, stages, queue, p); err != nil {
		return err
	}
	if err := p.Step("ready nodes", nil, func() error { return c.waitNodes(ctx, env) }); err != nil {
		return fmt.Errorf("%w: see 'logs kubelet'", err)
	}
	return queue.Wait(ctx, client)
}

// boot starts all machines and waits for the API server.
func (c *Cluster) boot(
	ctx context.Context, plan []network.Node, builder *build.Builder, programs build.Programs, p *progress.Printer,
) error {
	// Everything that an earlier up or a crash has left is ours by record, and in the way.
	if err := c.remove(p); err != nil {
		return err
	}
	if err := c.writeState(state{Nodes: len(plan)}); err != nil {
		return err
	}
	start := func() error { return c.start(ctx, plan, programs) }
	if err := p.Step(fmt.Sprintf("start control plane and %d nodes", len(plan)), nil, start); err != nil {
		return err
	}
	env, err := c.environment(plan, builder, programs)
	if err != nil {
		return err
	}
	if err := p.Step("ready control plane", nil, func() error { return waitAPI(ctx, env) }); err != nil {
		return fmt.Errorf("%w: see 'logs apiserver'", err)
	}
	return nil
}

// size of the cluster in nodes: the request, or what there is, or one.
func (c *Cluster) size(asked int) int {
	if asked > 0 {
		return asked
	}
	if s, err := c.readState(); err == nil && s.Core {
		return s.Nodes
	}
	return 1
}

// Build only fills the cache.
func (c *Cluster) Build(ctx context.Context, p *progress.Printer) error {
	if err := host.Install(ctx, p); err != nil {
		return err
	}
	builder, _, err := c.programs(ctx, p)
	if err != nil {
		return err
	}
	return builder.Ensure(ctx, p, needed(append(addons.Core(), addons.Rest()...))...)
}

// needed names the programs of a cluster with these add-ons, in the order in which it needs them.
func needed(stages []addons.Stage) []string {
	core := addons.Tools(addons.Core())
	names := append(boot(), core...)
	names = append(names, client)
	for _, name := range addons.Tools(stages) {
		if !slices.Contains(core, name) {
			names = append(names, name)
		}
	}
	return names
}

// running returns how far a cluster of this size has come, and refuses one of another size. A machine that was unplugged on
// purpose does not count: that is a fault for 'plug' to repair, not for up.
func (c *Cluster) running(nodes int) (state, error) {
	s, err := c.readState()
	if err != nil || !s.Core {
		return state{}, err
	}
	if _, alive := machine.Find(c.dir(controlPlane)); !alive {
		return state{}, nil
	}
	if s.Nodes != nodes {
		return s, fmt.Errorf("cannot make it %d nodes: cluster %q runs with %d: run 'down' first", nodes, c.Name, s.Nodes)
	}
	return s, nil
}

// programs returns where each program is, or will be.
func (c *Cluster) programs(ctx context.Context, p *progress.Printer) (*build.Builder, build.Programs, error) {
	builder, err := build.New(ctx, c.Source, c.Cache)
	if err != nil {
		return nil, build.Programs{}, err
	}
	if err := host.MakeFolder(builder.Cache); err != nil {
		return nil, build.Programs{}, err
	}
	debian, err := host.Unpack(ctx, p, builder.Cache)
	if err != nil {
		return nil, build.Programs{}, err
	}
	programs, err := builder.Programs(debian)
	return builder, programs, err
}

// start boots all machines. They wait for each other by themselves.
func (c *Cluster) start(ctx context.Context, plan []network.Node, programs build.Programs) error {
	config, err := c.controlPlane(programs)
	if err != nil {
		return err
	}
	spec, err := controlplane.Prepare(config)
	if err != nil {
		return err
	}
	if err := machine.Start(spec, func(pid int) error { return network.WireControlPlane(ctx, pid) }); err != nil {
		return err
	}
	for _, n := range plan {
		if err := c.startNode(ctx, n, plan, programs, config.Identities); err != nil {
			return err
		}
	}
	return nil
}

// controlPlane issues all identities, and writes what machines and commands read of the cluster.
func (c *Cluster) controlPlane(programs build.Programs) (controlplane.Config, error) {
	ids, err := pki.NewIdentities(
		[]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"},
		[]string{network.ControlPlane, network.KubernetesService, "127.0.0.1"})
	if err != nil {
		return controlplane.Config{}, err
	}
	// What was pushed to an earlier cluster may be newer than what is pushed to this one, and Crossplane takes the newest.
	if err := os.RemoveAll(c.pushed()); err != nil {
		return controlplane.Config{}, fmt.Errorf("cannot remove the packages of an earlier cluster: %w", err)
	}
	if err := host.MakeFolder(c.registry()); err != nil {
		return controlplane.Config{}, err
	}
	if err := host.WriteFiles(c.state(), map[string][]byte{
		"kubeconfig": pki.Kubeconfig(controlplane.Server, ids.Cluster.Cert, ids.Admin),
		"hosts":      []byte("127.0.0.1 localhost\n" + network.ControlPlane + " registry.localhost\n"),
		"resolv.conf": []byte("search svc.cluster.local cluster.local\n" +
			"nameserver " + network.DNS + "\noptions timeout:1 attempts:2\n"),
	}); err != nil {
		return controlplane.Config{}, err
	}
	return controlplane.Config{
		Name: c.machine(controlPlane), Dir: c.dir(controlPlane), Registry: c.registry(),
		Programs: programs, Identities: ids, Hosts: c.hosts(), Resolver: c.resolver(),
	}, nil
}

func (c *Cluster) startNode(
	ctx context.Context, n network.Node, plan []network.Node, programs build.Programs, ids *pki.Identities,
) error {
	name := c.machine(n.Letter)
	id, err := ids.Node(name, n.Address.String())
	if err != nil {
		return err
	}
	spec, err := node.Prepare(node.Config{
		Name: name, Dir: c.dir(n.Letter), Network: n, Programs: programs, CNI: host.CNI(),
		Authority: ids.Cluster.Cert, Identity: id, KubeProxy: ids.KubeProxy, KubeRouter: ids.KubeRouter,
		Storage: ids.Storage,
	})
	if err != nil {
		return err
	}
	return c.startMachine(ctx, spec, n, plan)
}

func (c *Cluster) startMachine(ctx context.Context, spec machine.Spec, n network.Node, plan []network.Node) error {
	hub, err := c.pid(controlPlane)
	if err != nil {
		return err
	}
	return machine.Start(spec, func(pid int) error { return network.WireNode(ctx, hub, pid, n, plan) })
}

func (c *Cluster) environment(plan []network.Node, b *build.Builder, programs build.Programs) (*addons.Env, error) {
	pid, err := c.pid(controlPlane)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DialContext: netns.Dialer(netns.Of(pid), controlplane.RegistryAddress)}
	return &addons.Env{
		Nodes:      plan,
		Builder:    b,
		Programs:   programs,
		Registry:   &image.Registry{Host: controlplane.RegistryName, Transport: transport},
		Transport:  transport,
		Namespace:  netns.Of(pid),
		Kubeconfig: c.kubeconfig(),
	}, nil
}

func waitAPI(ctx context.Context, env *addons.Env) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		_, err := env.Kubectl(ctx, "get", "--raw=/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("cannot see the control plane become ready"), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// waitNodes waits for all nodes by name, because a kubelet may not even have registered yet.
func (c *Cluster) waitNodes(ctx context.Context, env *addons.Env) error {
	for _, n := range env.Nodes {
		for _, condition := range []string{"create", "condition=Ready"} {
			args := []string{"wait", "--for=" + condition, "--timeout=" + startTimeout.String(), "node/" + c.machine(n.Letter)}
			if _, err := env.Kubectl(ctx, args...); err != nil {
				return fmt.Errorf("cannot see node %q become ready: %w", n.Letter, err)
			}
		}
	}
	return nil
}

// LogFiles returns the log files of a component, or of all components when it is empty, by machine.
func (c *Cluster) LogFiles(component string) ([]string, error) {
	if component == "" {
		component = "*"
	}
	files, err := filepath.Glob(filepath.Join(c.state(), "*", "log", component+".log"))
	if err != nil {
		return nil, fmt.Errorf("cannot look for logs of %q: %w", component, err)
	}
	return files, nil
}
