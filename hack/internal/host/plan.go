// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Plan is what a command is about to change on this machine.
type Plan struct {
	// Packages of Debian that are missing.
	Packages []string
	// Modules of the kernel that are not loaded, nor built in.
	Modules []string
	// Cache is the project's folder for programs and images, if nothing was ever built there.
	Cache string
}

// Changes is the plan of an Install with the same packages. It only looks at files.
func Changes(only ...string) (Plan, error) {
	plan := Plan{Packages: missingPackages(only)}
	if len(only) > 0 {
		return plan, nil
	}
	known, err := fileSystems()
	if err != nil {
		return Plan{}, err
	}
	plan.Modules = missingModules(known, present)
	cache, err := cacheFolder()
	if err != nil {
		return Plan{}, err
	}
	if !present(filepath.Join(cache, "bin")) {
		plan.Cache = cache
	}
	return plan, nil
}

// Lines say the plan in words. There are none when nothing changes.
func (p Plan) Lines() []string {
	var lines []string
	if len(p.Packages) > 0 {
		lines = append(lines, "installs Debian packages, with their dependencies: "+strings.Join(p.Packages, " "))
	}
	if len(p.Modules) > 0 {
		lines = append(lines, "loads kernel modules, unless they are built in: "+strings.Join(p.Modules, " "))
	}
	if p.Cache != "" {
		lines = append(lines, fmt.Sprintf(
			"keeps programs and images in %s, and what Go compiles in Go's own caches: %.0f GiB have to be free", p.Cache, minDisk))
	}
	return lines
}

// missingModules are those that a cluster needs and the kernel does not have yet, given the file systems that it knows.
func missingModules(known []string, present func(path string) bool) []string {
	var missing []string
	for _, fs := range []string{"overlay", "xfs"} {
		if !slices.Contains(known, fs) {
			missing = append(missing, fs)
		}
	}
	if !present("/dev/loop-control") {
		missing = append(missing, "loop")
	}
	if !present(bridgeFilter) {
		missing = append(missing, "br_netfilter")
	}
	return missing
}

func cacheFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the user's cache folder: %w", err)
	}
	return filepath.Join(cache, "capstan"), nil
}
