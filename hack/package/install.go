// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// exampleRegistry is what mirror.yaml has in place of a mirror's name.
const exampleRegistry = "registry.example.org"

type installCmd struct {
	Registry string        `default:"${registry}" help:"Registry that the cluster pulls from."`
	Wait     time.Duration `default:"5m"          help:"How long to wait for packages to become healthy."`
}

// Run does what the README describes, and prints each command. It can be repeated: what is there is upgraded.
func (c *installCmd) Run(ctx context.Context, p *project) error {
	if _, err := exec.LookPath("kubectl"); err != nil {
		return fmt.Errorf("cannot install: %w: put kubectl into PATH", err)
	}
	if err := c.applyPlatform(ctx, p); err != nil {
		return err
	}
	// The second pass corrects dependencies: Crossplane chose the newest versions there are, which may be newer than asked.
	for range 2 {
		for _, a := range artifacts() {
			if err := c.install(ctx, p, a); err != nil {
				return err
			}
		}
	}
	return c.await(ctx, p)
}

// applyPlatform applies what packages cannot carry.
func (c *installCmd) applyPlatform(ctx context.Context, p *project) error {
	platform, err := os.ReadFile(filepath.Join(p.root, "package", "platform.yaml"))
	if err != nil {
		return fmt.Errorf("cannot read what packages cannot carry: %w", err)
	}
	if err := p.apply(ctx, platform, "kubectl apply --server-side -f package/platform.yaml"); err != nil {
		return err
	}
	if c.Registry == publicRegistry {
		return nil
	}
	mirror, err := os.ReadFile(filepath.Join(p.root, "package", "mirror.yaml"))
	if err != nil {
		return fmt.Errorf("cannot configure the cluster to pull from %s: %w", c.Registry, err)
	}
	return p.apply(ctx, bytes.ReplaceAll(mirror, []byte(exampleRegistry), []byte(c.Registry)),
		fmt.Sprintf("sed s/%s/%s/ package/mirror.yaml | kubectl apply --server-side --field-manager=capstan-mirror -f -", exampleRegistry, c.Registry),
		"--field-manager=capstan-mirror")
}

// install upgrades a package that is there. Of packages that are not, it only installs the APIs: Crossplane then installs the
// function and the provider that they depend on.
func (c *installCmd) install(ctx context.Context, p *project, a artifact) error {
	if a.Kind == "" {
		return nil
	}
	ref := a.reference(publicRegistry, p.version)
	found, err := exec.CommandContext(ctx, "kubectl", "get", a.resource(), a.installed(),
		"--ignore-not-found", "--output=jsonpath={.spec.package}").Output()
	if err != nil {
		return fmt.Errorf("cannot find out whether %s is installed: %w%s", a.Name, err, said(err))
	}
	switch {
	case string(found) == ref:
		return nil
	case len(found) > 0:
		return p.show(exec.CommandContext(ctx, p.crossplane, "xpkg", "update", a.Kind, ref))
	case a.Kind == "configuration":
		return p.show(exec.CommandContext(ctx, p.crossplane, "xpkg", "install", a.Kind, ref, "--wait="+c.Wait.String()))
	}
	return nil
}

// await returns once every package runs.
func (c *installCmd) await(ctx context.Context, p *project) error {
	for _, a := range artifacts() {
		if a.Kind == "" {
			continue
		}
		err := p.show(exec.CommandContext(ctx, "kubectl", "wait", a.resource(), a.installed(),
			"--for=condition=Healthy", "--timeout="+c.Wait.String()))
		if err != nil {
			return fmt.Errorf("%w\n`kubectl describe %s %s` shows why", err, a.resource(), a.installed())
		}
	}
	return nil
}

// resource is the full name of a package's kind, which kubectl needs because others use the short one too.
func (a artifact) resource() string { return a.Kind + "s.pkg.crossplane.io" }

// apply applies manifests and shows the command that people would use.
func (p *project) apply(ctx context.Context, manifests []byte, command string, flags ...string) error {
	p.Sayf("%s", command)
	cmd := exec.CommandContext(ctx, "kubectl", append([]string{"apply", "--server-side", "-f", "-"}, flags...)...)
	cmd.Stdin = bytes.NewReader(manifests)
	return run(cmd)
}

// show prints a command the way people would type it and runs it.
func (p *project) show(cmd *exec.Cmd) error {
	p.Sayf("%s", strings.Join(append([]string{filepath.Base(cmd.Args[0])}, cmd.Args[1:]...), " "))
	return run(cmd)
}

// said returns what a command wrote to its standard error.
func said(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return ""
	}
	return "\n" + string(bytes.TrimSpace(exit.Stderr))
}
