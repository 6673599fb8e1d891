// SPDX-License-Identifier: Apache-2.0

// Package cluster starts, breaks, repairs and removes an embedded cluster.
package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/hack/internal/host"
	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/network"
)

// A Cluster is a place on disk and the machines that were started from it.
type Cluster struct {
	// Name tells clusters on one machine apart; it begins the names of machines and control groups.
	Name string
	// Source is the folder hack of the repository.
	Source string
	// Cache keeps what outlives clusters: programs, and each cluster's images.
	Cache string
}

// state is what one up leaves for later commands.
type state struct {
	// Nodes is how many nodes were requested.
	Nodes int `json:"nodes"`
	// Core once a first Algorithm can be served. A cluster that has not come that far is removed by the next up.
	Core bool `json:"core"`
	// Complete once every add-on has been ready.
	Complete bool `json:"complete"`
}

// New returns the cluster of a name, whether or not it runs.
func New(name, source string) (*Cluster, error) {
	// Control groups and host names take these everywhere.
	if !regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`).MatchString(name) {
		return nil, fmt.Errorf("cannot name a cluster %q: use up to 20 lower-case letters, digits and dashes", name)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("cannot find the cache folder: %w: set HOME or XDG_CACHE_HOME", err)
	}
	return &Cluster{Name: name, Source: source, Cache: filepath.Join(cache, "capstan")}, nil
}

func (c *Cluster) home() string     { return filepath.Join(c.Cache, "clusters", c.Name) }
func (c *Cluster) registry() string { return filepath.Join(c.home(), "registry") }

// pushed is where the registry keeps the packages and images of this project; the ones of add-ons are beside it.
func (c *Cluster) pushed() string {
	return filepath.Join(c.registry(), "docker", "registry", "v2", "repositories", "capstan-dev")
}

func (c *Cluster) state() string      { return filepath.Join(c.home(), "state") }
func (c *Cluster) kubeconfig() string { return filepath.Join(c.state(), "kubeconfig") }
func (c *Cluster) hosts() string      { return filepath.Join(c.state(), "hosts") }
func (c *Cluster) resolver() string   { return filepath.Join(c.state(), "resolv.conf") }

// controlPlane is the letters of the machine that is no node.
const controlPlane = "cp"

func (c *Cluster) dir(letter string) string     { return filepath.Join(c.state(), letter) }
func (c *Cluster) machine(letter string) string { return c.Name + "-" + letter }

// letters names all machines that a cluster can have, nodes first, as they are stopped.
func letters() []string {
	all := make([]string, 0, network.MaxNodes+1)
	for i := range network.MaxNodes {
		all = append(all, string(rune('a'+i)))
	}
	return append(all, controlPlane)
}

// pid returns the first process of a machine that runs.
func (c *Cluster) pid(letter string) (int, error) {
	proc, alive := machine.Find(c.dir(letter))
	if !alive {
		return 0, fmt.Errorf("cannot find machine %q running: run 'up' (or 'plug', for a node) first", c.machine(letter))
	}
	return proc.PID, nil
}

func (c *Cluster) readState() (state, error) {
	var s state
	data, err := os.ReadFile(filepath.Join(c.state(), "cluster.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("cannot read the state of cluster %q: %w", c.Name, err)
	}
	// What a crash has cut short is as good as nothing.
	if err := json.Unmarshal(data, &s); err != nil {
		s = state{}
	}
	return s, nil
}

func (c *Cluster) writeState(s state) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("cannot encode the state of cluster %q: %w", c.Name, err)
	}
	return host.WriteFiles(c.state(), map[string][]byte{"cluster.json": data})
}

// lock keeps two commands from changing the cluster at once. The kernel drops the lock with its holder.
func (c *Cluster) lock() (unlock func(), err error) {
	if err := host.CheckRoot(); err != nil {
		return nil, err
	}
	if err := host.MakeFolder(c.home()); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(c.home(), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock cluster %q: %w", c.Name, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(
			fmt.Errorf("cannot lock cluster %q: another up, down or fault is at work: wait for it", c.Name), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
