// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// stopTimeout is how long a machine may take to shut down before its plug is pulled. Its own grace is shorter.
const stopTimeout = 8 * time.Second

// Down removes the cluster with everything on it. Programs and images stay in the cache.
func (c *Cluster) Down(p *progress.Printer) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return c.remove(p)
}

// remove ends what is recorded as ours, by process and not by name, and deletes the state. It does the same whether the
// cluster runs, has half started or has crashed.
func (c *Cluster) remove(p *progress.Printer) error {
	left, err := c.Leftovers()
	if err != nil {
		return err
	}
	if _, err := os.Stat(c.state()); errors.Is(err, os.ErrNotExist) && len(left) == 0 {
		return nil
	}
	return p.Step("remove cluster "+c.Name, nil, func() error {
		if err := c.stopVisitors(); err != nil {
			return err
		}
		if err := c.stopMachines(); err != nil {
			return err
		}
		if err := os.RemoveAll(c.state()); err != nil {
			return fmt.Errorf("cannot delete the state of cluster %q: %w", c.Name, err)
		}
		return nil
	})
}

// stopMachines stops the nodes side by side, then the control plane.
func (c *Cluster) stopMachines() error {
	all := letters()
	nodes, hub := all[:len(all)-1], all[len(all)-1]
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, letter := range nodes {
		wait.Go(func() { errs[i] = machine.Stop(c.dir(letter), c.machine(letter), stopTimeout) })
	}
	wait.Wait()
	errs[len(nodes)] = machine.Stop(c.dir(hub), c.machine(hub), stopTimeout)
	return errors.Join(errs...)
}
