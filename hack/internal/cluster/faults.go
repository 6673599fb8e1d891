// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/network"
)

// Cut takes a node off the network; everything on it keeps running.
func (c *Cluster) Cut(ctx context.Context, name string) error { return c.cable(ctx, name, network.Cut) }

// Rejoin connects a node again that was cut off.
func (c *Cluster) Rejoin(ctx context.Context, name string) error {
	return c.cable(ctx, name, network.Rejoin)
}

// Block has the API server answer no more to an address, such as the address of a pod.
func (c *Cluster) Block(ctx context.Context, address string) error {
	return c.route(ctx, address, network.Block)
}

// Unblock an address that is blocked.
func (c *Cluster) Unblock(ctx context.Context, address string) error {
	return c.route(ctx, address, network.Unblock)
}

func (c *Cluster) route(ctx context.Context, address string, do func(ctx context.Context, hub int, address netip.Addr) error) error {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("cannot find %q in the network of cluster %q: %w", address, c.Name, err)
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	hub, err := c.pid(controlPlane)
	if err != nil {
		return err
	}
	return do(ctx, hub, a)
}

func (c *Cluster) cable(
	ctx context.Context, name string, do func(ctx context.Context, hub int, letter string) error,
) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	n, _, err := c.node(name)
	if err != nil {
		return err
	}
	if _, err := c.pid(n.Letter); err != nil {
		return err
	}
	hub, err := c.pid(controlPlane)
	if err != nil {
		return err
	}
	return do(ctx, hub, n.Letter)
}

// Unplug kills everything on a node in one instant. Its disk stays.
func (c *Cluster) Unplug(name string) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	n, _, err := c.node(name)
	if err != nil {
		return err
	}
	return machine.Stop(c.dir(n.Letter), c.machine(n.Letter), 0)
}

// Plug boots a node again whose plug was pulled, with the disk it had.
func (c *Cluster) Plug(ctx context.Context, name string) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	n, plan, err := c.node(name)
	if err != nil {
		return err
	}
	if _, alive := machine.Find(c.dir(n.Letter)); alive {
		return fmt.Errorf("cannot plug in node %q: it is running", n.Letter)
	}
	spec, err := machine.Load(c.dir(n.Letter))
	if err != nil {
		return err
	}
	return c.startMachine(ctx, spec, n, plan)
}

// Freeze a component of the control plane, for instance apiserver: it takes connections and never answers.
func (c *Cluster) Freeze(component string) error { return c.signal(component, syscall.SIGSTOP) }

// Thaw a component that was frozen.
func (c *Cluster) Thaw(component string) error { return c.signal(component, syscall.SIGCONT) }

func (c *Cluster) signal(component string, sig syscall.Signal) error {
	p, err := machine.Running(c.dir(controlPlane), component)
	if err != nil {
		return err
	}
	return p.Signal(sig)
}

// node finds a node by its letter or full name, in the cluster as it was started.
func (c *Cluster) node(name string) (network.Node, []network.Node, error) {
	s, err := c.readState()
	if err != nil {
		return network.Node{}, nil, err
	}
	plan, err := network.Plan(s.Nodes)
	if err != nil {
		return network.Node{}, nil, fmt.Errorf("cannot find cluster %q running: run 'up' first", c.Name)
	}
	letter := strings.TrimPrefix(name, c.Name+"-")
	i := slices.IndexFunc(plan, func(n network.Node) bool { return n.Letter == letter })
	if i < 0 {
		return network.Node{}, nil, fmt.Errorf("cannot find node %q: cluster %q has %d nodes, from a on", name, c.Name, s.Nodes)
	}
	return plan[i], plan, nil
}
