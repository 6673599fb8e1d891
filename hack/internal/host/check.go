// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/hack/internal/netns"
)

// Sizes are in GiB.
const (
	gib = 1 << 30
	// minDisk covers compilers' caches, programs, images and containers.
	minDisk = 10.0
	// minMemory covers the control plane, and minNodeMemory each node with the add-ons and a few pods.
	minMemory     = 2.0
	minNodeMemory = 1.0
)

// Check reports, before anything is touched, what the real machine lacks for a cluster of this many nodes.
func Check(cache string, nodes int) error {
	if err := CheckRoot(); err != nil {
		return err
	}
	if err := checkDisk(cache); err != nil {
		return err
	}
	return checkMemory(nodes)
}

// CheckRoot reports when the user is not root.
func CheckRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("cannot work with namespaces: not root: run this as root, for example with sudo -E")
	}
	return nil
}

func checkDisk(cache string) error {
	// The folder may not be there yet; its file system is the file system of the nearest parent.
	dir := cache
	for !present(dir) {
		dir = filepath.Dir(dir)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("cannot see how full %s is: %w", dir, err)
	}
	if free := float64(fs.Bavail) * float64(fs.Bsize) / gib; free < minDisk {
		return fmt.Errorf("cannot start with %.1f GiB free in %s: make room for %.0f GiB, or set XDG_CACHE_HOME to a roomier place",
			free, dir, minDisk)
	}
	return nil
}

func checkMemory(nodes int) error {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return fmt.Errorf("cannot see how much memory is free: %w", err)
	}
	free, err := availableMemory(data)
	if err != nil {
		return err
	}
	if want := minMemory + float64(nodes)*minNodeMemory; free < want {
		return fmt.Errorf("cannot start %d nodes with %.1f GiB of memory available: free %.0f GiB, or ask for fewer nodes",
			nodes, free, want)
	}
	return nil
}

// availableMemory reads GiB from the content of /proc/meminfo.
func availableMemory(meminfo []byte) (float64, error) {
	for line := range bytes.Lines(meminfo) {
		var kib float64
		if n, _ := fmt.Sscanf(string(line), "MemAvailable: %f kB", &kib); n == 1 {
			return kib * 1024 / gib, nil
		}
	}
	return 0, errors.New("cannot find MemAvailable in /proc/meminfo")
}

// bridgeFilter is there when packet filters see what crosses a bridge.
const bridgeFilter = "/proc/sys/net/bridge/bridge-nf-call-iptables"

// A probe tries one feature of the kernel.
type probe struct {
	feature string
	cmd     []string
}

// CheckKernel tries what a cluster needs of the kernel, in a network namespace that ends with the trial.
func CheckKernel(ctx context.Context) error {
	known, err := fileSystems()
	if err != nil {
		return err
	}
	// Features may be modules that nothing has asked for yet; where they are built in, these commands fail and do not matter.
	for _, module := range missingModules(known, present) {
		_ = exec.CommandContext(ctx, "modprobe", module).Run()
	}
	known, err = fileSystems()
	switch {
	case err != nil:
		return err
	case !slices.Contains(known, "overlay"):
		return missing("overlay file systems")
	case !slices.Contains(known, "xfs"):
		return missing("XFS, which volumes that grow are made of,")
	case !present("/dev/loop-control"):
		return missing("loop devices, which volumes that grow are made of,")
	}
	return netns.DoNew(func() error {
		for _, p := range []probe{
			{feature: "bridges", cmd: []string{"ip", "link", "add", "br0", "type", "bridge"}},
			{feature: "virtual Ethernet pairs", cmd: []string{"ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"}},
			{feature: "address translation by iptables", cmd: []string{"iptables", "-t", "nat", "-A", "OUTPUT", "-j", "RETURN"}},
			{feature: "iptables comments and connection tracking", cmd: []string{
				"iptables", "-A", "OUTPUT", "-m", "comment", "--comment", "x", "-m", "conntrack", "--ctstate", "NEW", "-j", "ACCEPT",
			}},
			{feature: "IP sets", cmd: []string{"ipset", "create", "capstan", "hash:ip"}},
			{feature: "iptables matches of IP sets", cmd: []string{
				"iptables", "-A", "OUTPUT", "-m", "set", "--match-set", "capstan", "dst", "-j", "ACCEPT",
			}},
		} {
			if out, err := exec.CommandContext(ctx, p.cmd[0], p.cmd[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("%w (%s)", missing(p.feature), bytes.TrimSpace(out))
			}
		}
		if !present(bridgeFilter) {
			return missing("packet filters on bridges (br_netfilter)")
		}
		return nil
	})
}

// fileSystems that the kernel knows now.
func fileSystems() ([]string, error) {
	data, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return nil, fmt.Errorf("cannot see what the kernel offers: %w", err)
	}
	return strings.Fields(string(data)), nil
}

func missing(feature string) error {
	return fmt.Errorf("cannot find %s in this kernel: load the module or use a kernel of a common distribution", feature)
}
