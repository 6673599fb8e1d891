// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/host"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// DownAll removes the cluster and then the project's cache folder, and says what of this machine it leaves. It removes
// nothing while another cluster runs from the same folder.
func (c *Cluster) DownAll(ctx context.Context, p *progress.Printer) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	release, err := c.alone()
	if err != nil {
		return err
	}
	defer release()
	if err := c.remove(p); err != nil {
		return err
	}
	if err := noMounts(c.Cache); err != nil {
		return err
	}
	packages, err := host.Installed(c.Cache)
	if err != nil {
		return err
	}
	if err := p.Step("remove "+c.Cache, nil, func() error { return empty(c.Cache, len(packages) > 0) }); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	for _, line := range remains(packages, filepath.Join(c.Cache, host.RecordName), goCaches(ctx)) {
		p.Sayf("%s", line)
	}
	return nil
}

// alone locks all other clusters of the same cache, and fails if one of them runs or has left something behind.
func (c *Cluster) alone() (release func(), err error) {
	var unlocks []func()
	release = func() {
		for _, unlock := range unlocks {
			unlock()
		}
	}
	entries, err := os.ReadDir(filepath.Join(c.Cache, "clusters"))
	if err != nil {
		return nil, fmt.Errorf("cannot list clusters: %w", err)
	}
	var busy []string
	for _, e := range entries {
		if !e.IsDir() || e.Name() == c.Name {
			continue
		}
		other := &Cluster{Name: e.Name(), Source: c.Source, Cache: c.Cache}
		unlock, err := other.lock()
		if err != nil {
			busy = append(busy, other.Name)
			continue
		}
		unlocks = append(unlocks, unlock)
		left, err := other.Leftovers()
		if err != nil {
			release()
			return nil, err
		}
		// A folder alone belongs to a cluster that is long gone.
		if slices.ContainsFunc(left, func(what string) bool { return what != "folder "+other.state() }) {
			busy = append(busy, other.Name)
		}
	}
	if len(busy) > 0 {
		release()
		return nil, fmt.Errorf("cannot remove %s: it is used by %s: run 'down' with --name for each first", c.Cache, strings.Join(busy, ", "))
	}
	return release, nil
}

// noMounts keeps a mount that leaked from being emptied.
func noMounts(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("cannot list mounts: %w", err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			return fmt.Errorf("cannot remove %s: %s is mounted: unmount it", dir, fields[4])
		}
	}
	return nil
}

// empty a cache folder. The record of installed packages outlives it, so that it can be named again.
func empty(dir string, record bool) error {
	if !record {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("cannot remove the cache: %w", err)
		}
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot list the cache: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.Name() != host.RecordName {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot remove the cache: %w", err)
	}
	return nil
}

// measureTimeout is how long the sizes of Go's caches are worth. To count 14 GiB took two minutes on a busy disk.
const measureTimeout = 10 * time.Second

// A goCache is a folder in which Go keeps what it has compiled or downloaded.
type goCache struct {
	name string
	dir  string
	// size is the size of the files that were counted, which are all unless the time was over.
	size int64
	all  bool
}

// goCaches are Go's own, which other projects share. Without a Go toolchain there is nothing to say about them.
func goCaches(ctx context.Context) []goCache {
	caches := []goCache{{name: "build cache"}, {name: "module cache"}}
	out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return nil
	}
	dirs := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(dirs) != len(caches) {
		return nil
	}
	for i, dir := range dirs {
		caches[i].dir = dir
		caches[i].size, caches[i].all = folderSize(ctx, dir)
	}
	return caches
}

// folderSize is the size of all files below a folder, or of the files that could be counted until ctx was done. What cannot be
// read, or has just gone, does not count.
func folderSize(ctx context.Context, dir string) (size int64, all bool) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return filepath.SkipAll
		}
		if err != nil {
			return nil //nolint:nilerr // A folder that cannot be read has no size.
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size, ctx.Err() == nil
}

// remains says what stays on this machine when the cluster and the cache are gone.
func remains(packages []string, record string, caches []goCache) []string {
	var lines []string
	if len(packages) > 0 {
		lines = append(lines,
			"Debian packages stay that were installed for the cluster; remove them with: apt-get remove --autoremove "+strings.Join(packages, " "),
			"their names stay in "+record)
	}
	for _, c := range caches {
		least := ""
		if !c.all {
			least = "at least "
		}
		if c.size > 0 || !c.all {
			lines = append(lines, fmt.Sprintf("Go's %s stays: %s%.1f GiB in %s", c.name, least, float64(c.size)/(1<<30), c.dir))
		}
	}
	if len(caches) > 0 {
		lines = append(lines, "Go's caches serve other projects, too; empty them with: go clean -cache -modcache")
	}
	return append(lines, "kernel modules that were loaded stay until the next boot")
}
