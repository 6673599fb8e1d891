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

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// Tools that Debian builds for us and that need no installation.
const (
	// Registry keeps tags on disk, unlike the registries that come as Go modules.
	Registry = "docker-registry"
	// Busybox gives test pods a shell and simple network clients. It needs no library.
	Busybox = "busybox-static"
)

// Chromium is the package of the browser, without a window, that tests of pages drive. No cluster needs it: it is installed where it is named.
const Chromium = "chromium-headless-shell"

// A need is one thing of the real machine and the Debian package that has it. Any of the paths will do, and any match of a
// pattern; a bare name is looked up in PATH.
type need struct {
	pkg   string
	paths []string
}

func needs() []need {
	return []need{
		{"iproute2", []string{"ip"}},
		{"iptables", []string{"iptables"}},
		{"ipset", []string{"ipset"}},
		{"conntrack", []string{"conntrack"}},
		{"kmod", []string{"modprobe"}},
		{"mount", []string{"mount"}},
		{"xfsprogs", []string{"mkfs.xfs"}},
		{"gcc", []string{"gcc"}},
		{"pkg-config", []string{"pkg-config"}},
		{"libseccomp-dev", []string{"/usr/include/seccomp.h"}},
		{build.PythonVenv, []string{"/usr/lib/python3*/ensurepip"}},
		{"containernetworking-plugins", bridgePlugins()},
	}
}

// browser is the need of tests of pages.
func browser() need { return need{Chromium, []string{"/usr/bin/chromium-headless-shell"}} }

// CNI returns the folder with the CNI plugins.
func CNI() string {
	for _, path := range bridgePlugins() {
		if present(path) {
			return filepath.Dir(path)
		}
	}
	return ""
}

func bridgePlugins() []string {
	return []string{"/usr/lib/cni/bridge", "/opt/cni/bin/bridge", "/usr/libexec/cni/bridge"}
}

// Install installs what is missing on Debian and its children, and asks for it elsewhere. It looks at the named packages
// only, if there are any, else at everything that a cluster needs. Before it changes anything it says what will change.
func Install(ctx context.Context, p *progress.Printer, only ...string) error {
	plan, err := Changes(only...)
	if err != nil {
		return err
	}
	list := strings.Join(plan.Packages, " ")
	if list != "" && !present("apt-get") {
		return fmt.Errorf("cannot find all system tools: install what Debian calls %s", list)
	}
	for _, line := range plan.Lines() {
		p.Sayf("this command %s", line)
	}
	if list == "" {
		return nil
	}
	err = p.Step("install "+list, nil, func() error { return install(ctx, plan.Packages) })
	// Some may be there although others failed.
	return errors.Join(err, recordInstalled(plan.Packages, only))
}

// Java compiles and runs jobs of Flink. No cluster needs it.
const Java = "default-jdk-headless"

// InstallJava installs a compiler of Java if there is none.
func InstallJava(ctx context.Context, p *progress.Printer) error {
	if present("javac") {
		return nil
	}
	if !present("apt-get") {
		return fmt.Errorf("cannot find javac: install what Debian calls %s", Java)
	}
	p.Sayf("this command installs %s, to run Flink and Spark", Java)
	return p.Step("install "+Java, nil, func() error { return install(ctx, []string{Java}) })
}

func install(ctx context.Context, packages []string) error {
	args := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	if err := apt(ctx, "", args...); err == nil {
		return nil
	}
	// The lists may be older than the archive, or missing altogether.
	if err := apt(ctx, "", "update"); err != nil {
		return err
	}
	return apt(ctx, "", args...)
}

// recordInstalled records the packages that are there now.
func recordInstalled(packages, only []string) error {
	cache, err := cacheFolder()
	if err != nil {
		return err
	}
	missing := missingPackages(only)
	return record(cache, slices.DeleteFunc(slices.Clone(packages), func(pkg string) bool { return slices.Contains(missing, pkg) }))
}

// missingPackages of the named ones, or of all when none is.
func missingPackages(only []string) []string {
	var missing []string
	for _, n := range append(needs(), browser()) {
		if named := slices.Contains(only, n.pkg); !named && (len(only) > 0 || n.pkg == Chromium) {
			continue
		}
		if !slices.ContainsFunc(n.paths, anywhere) {
			missing = append(missing, n.pkg)
		}
	}
	return missing
}

// Unpack downloads Registry and Busybox into the cache, without installing them, and returns the folder below the
// cache of each.
func Unpack(ctx context.Context, p *progress.Printer, cache string) (map[string]string, error) {
	folders := map[string]string{}
	for _, pkg := range []string{Registry, Busybox} {
		folders[pkg] = "debian-" + pkg
		dir := filepath.Join(cache, folders[pkg])
		if present(dir) {
			continue
		}
		if !present("apt-get") || !present("dpkg-deb") {
			return nil, fmt.Errorf("cannot download %q without apt: unpack Debian's package into %s", pkg, dir)
		}
		if err := p.Step("download "+pkg, nil, func() error { return unpack(ctx, pkg, dir) }); err != nil {
			return nil, err
		}
	}
	return folders, nil
}

func unpack(ctx context.Context, pkg, dir string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+pkg+"-")
	if err != nil {
		return fmt.Errorf("cannot download %q: %w", pkg, err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := apt(ctx, tmp, "download", pkg); err != nil {
		if err := apt(ctx, tmp, "update"); err != nil {
			return err
		}
		if err := apt(ctx, tmp, "download", pkg); err != nil {
			return err
		}
	}
	debs, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("cannot find the one package that apt downloaded for %q", pkg)
	}
	root := filepath.Join(tmp, "root")
	if out, err := exec.CommandContext(ctx, "dpkg-deb", "-x", debs[0], root).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot unpack %q: %w: %s", pkg, err, bytes.TrimSpace(out))
	}
	if err := os.Rename(root, dir); err != nil {
		return fmt.Errorf("cannot keep %q: %w", pkg, err)
	}
	return nil
}

func apt(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot run apt-get %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// anywhere is present for a path that may be a pattern.
func anywhere(pattern string) bool {
	if matches, err := filepath.Glob(pattern); err == nil && len(matches) > 0 {
		return true
	}
	return present(pattern)
}

func present(path string) bool {
	if strings.HasPrefix(path, "/") {
		_, err := os.Stat(path)
		return err == nil
	}
	_, err := exec.LookPath(path)
	return err == nil
}
