// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/machine"
)

// visitorGrace is how long commands that 'exec' has started have to end.
const visitorGrace = 2 * time.Second

// visitors are processes of the real machine inside a machine's network namespace: commands that 'exec' has started.
// They would keep the namespace alive after the machine. The namespace of a machine that has ended may have been reused,
// so there they must also say themselves that they came for this cluster.
func (c *Cluster) visitors() ([]int, error) {
	running := map[string]bool{}
	inits := map[int]bool{}
	for _, letter := range letters() {
		proc, alive := machine.Find(c.dir(letter))
		if proc.Net != "" {
			running[proc.Net] = alive
		}
		inits[proc.PID] = true
	}
	self, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return nil, fmt.Errorf("cannot see the own namespace: %w", err)
	}
	paths, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	var found []int
	for _, path := range paths {
		net, err := os.Readlink(path)
		alive, ours := running[net]
		if err != nil || !ours {
			continue
		}
		dir := filepath.Dir(filepath.Dir(path))
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || inits[pid] {
			continue
		}
		// The machine's own processes have its pid namespace and end with it.
		if space, err := os.Readlink(filepath.Join(dir, "ns", "pid")); err != nil || space != self {
			continue
		}
		if alive || c.cameFor(dir) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// cameFor reports whether the process at a folder of /proc was started by 'exec' for this cluster.
func (c *Cluster) cameFor(dir string) bool {
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return false
	}
	return slices.Contains(strings.Split(string(env), "\x00"), "KUBECONFIG="+c.kubeconfig())
}

func (c *Cluster) stopVisitors() error {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for end := time.Now().Add(visitorGrace); ; time.Sleep(50 * time.Millisecond) {
			pids, err := c.visitors()
			if err != nil {
				return err
			}
			if len(pids) == 0 {
				return nil
			}
			for _, pid := range pids {
				if pid == os.Getpid() {
					return errors.New("cannot remove the cluster from inside: leave 'exec' first")
				}
				_ = syscall.Kill(pid, sig)
			}
			if time.Now().After(end) {
				break
			}
		}
	}
	return nil
}
