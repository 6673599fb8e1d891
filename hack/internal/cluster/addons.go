// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/capstan-dev/capstan/hack/internal/addons"
	"github.com/capstan-dev/capstan/hack/internal/network"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// AddOns installs all usual add-ons again into a cluster that runs, or those that are named. What has changed since the cluster was
// started is renewed, the rest stays as it is.
func (c *Cluster) AddOns(ctx context.Context, names []string, p *progress.Printer) error {
	stages := append(addons.Core(), addons.Rest()...)
	if len(names) > 0 {
		var err error
		if stages, err = addons.Named(names...); err != nil {
			return err
		}
	}
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
