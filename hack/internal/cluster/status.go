// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"

	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/network"
)

// Status prints what runs and what is broken on purpose. It returns an error when the cluster is not up.
func (c *Cluster) Status(ctx context.Context, out io.Writer) error {
	s, err := c.readState()
	if err != nil {
		return err
	}
	if s.Nodes == 0 {
		return fmt.Errorf("cannot find cluster %q running: run 'up' first", c.Name)
	}
	hub, up := machine.Find(c.dir(controlPlane))
	_, _ = fmt.Fprintf(out, "%-14s %s\n", c.machine(controlPlane), health(up, hub.PID, false))
	plan, err := network.Plan(s.Nodes)
	if err != nil {
		return err
	}
	for _, n := range plan {
		proc, alive := machine.Find(c.dir(n.Letter))
		cut := false
		if up && alive {
			if cut, err = network.IsCut(ctx, hub.PID, n.Letter); err != nil {
				return err
			}
		}
		_, _ = fmt.Fprintf(out, "%-14s %s\n", c.machine(n.Letter), health(alive, proc.PID, cut))
	}
	if !up || !s.Core {
		return fmt.Errorf("cannot call cluster %q complete: run 'up'", c.Name)
	}
	if !s.Complete {
		_, _ = fmt.Fprintln(out, "some add-ons are not installed yet: run 'up'")
	}
	return nil
}

func health(alive bool, pid int, cut bool) string {
	switch {
	case !alive:
		return "unplugged"
	case cut:
		return fmt.Sprintf("running as %d, cut off", pid)
	}
	return fmt.Sprintf("running as %d", pid)
}
