// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/capstan-dev/capstan/hack/internal/addons"
	"github.com/capstan-dev/capstan/hack/internal/network"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// AddOns installs all add-ons again into a cluster that runs. Those that have changed since it was started are renewed, the
// others stay as they are.
func (c *Cluster) AddOns(ctx context.Context, p *progress.Printer) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := c.pid(controlPlane); err != nil {
		return err
	}
	s, err := c.readState()
	if err != nil {
		return err
	}
	plan, err := network.Plan(s.Nodes)
	if err != nil {
		return err
	}
	builder, programs, err := c.programs(ctx, p)
	if err != nil {
		return err
	}
	stages := append(addons.Core(), addons.Rest()...)
	queue, err := builder.Start(ctx, p, addons.Tools(stages)...)
	if err != nil {
		return err
	}
	defer queue.Stop()
	env, err := c.environment(plan, builder, programs)
	if err != nil {
		return err
	}
	return addons.Install(ctx, env, stages, queue, p)
}
