// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	"github.com/capstan-dev/capstan/hack/internal/addons"
	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/controlplane"
	"github.com/capstan-dev/capstan/hack/internal/host"
	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/network"
	"github.com/capstan-dev/capstan/hack/internal/pki"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// A Bare cluster has a control plane and no nodes: its programs are processes of one machine, and nothing makes pods.
type Bare struct {
	*addons.Env

	// Identities of the control plane, which issue certificates for the other components.
	Identities *pki.Identities
	// Dir is the machine's data folder, which its components see as machine.Data.
	Dir string
}

// UpBare starts a control plane without nodes, and the components that are returned by others beside it, which may write files into the
// machine's data folder. The tools are built first. A cluster of this name that runs is removed.
func (c *Cluster) UpBare(
	ctx context.Context, p *progress.Printer, tools []string, others func(Bare) ([]machine.Component, error),
) (Bare, error) {
	unlock, err := c.lock()
	if err != nil {
		return Bare{}, err
	}
	defer unlock()
	if err := host.Install(ctx, p); err != nil {
		return Bare{}, err
	}
	builder, programs, err := c.programs(ctx, p)
	if err != nil {
		return Bare{}, err
	}
	if err := builder.Ensure(ctx, p, append([]string{"etcd", "kubernetes"}, tools...)...); err != nil {
		return Bare{}, err
	}
	if err := c.remove(p); err != nil {
		return Bare{}, err
	}
	b, err := c.startBare(ctx, builder, programs, others)
	if err != nil {
		return Bare{}, err
	}
	if err := p.Step("ready control plane", nil, func() error { return waitAPI(ctx, b.Env) }); err != nil {
		return Bare{}, fmt.Errorf("%w: see 'logs apiserver'", err)
	}
	return b, nil
}

func (c *Cluster) startBare(
	ctx context.Context, builder *build.Builder, programs build.Programs, others func(Bare) ([]machine.Component, error),
) (Bare, error) {
	config, err := c.controlPlane(programs)
	if err != nil {
		return Bare{}, err
	}
	b := Bare{Env: &addons.Env{Programs: programs}, Identities: config.Identities, Dir: config.Dir}
	components, err := others(b)
	if err != nil {
		return Bare{}, err
	}
	spec, err := controlplane.PrepareBare(config, components...)
	if err != nil {
		return Bare{}, err
	}
	if err := c.writeState(state{}); err != nil {
		return Bare{}, err
	}
	if err := machine.Start(spec, func(pid int) error { return network.WireControlPlane(ctx, pid) }); err != nil {
		return Bare{}, err
	}
	b.Env, err = c.environment(nil, builder, programs)
	return b, err
}

// ControlPlane is the data folder of the machine that runs the control plane.
func (c *Cluster) ControlPlane() string { return c.dir(controlPlane) }
