// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/hack/internal/addons"
	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/controlplane"
	"github.com/capstan-dev/capstan/hack/internal/host"
	"github.com/capstan-dev/capstan/hack/internal/netns"
)

// A Variable is one line of the environment that commands on the cluster get.
type Variable struct{ Name, Value string }

// Environment describes the cluster to other programs. Addresses in it only work inside the cluster's network.
func (c *Cluster) Environment(ctx context.Context) ([]Variable, error) {
	builder, err := build.New(ctx, c.Source, c.Cache)
	if err != nil {
		return nil, err
	}
	programs, err := builder.Programs(nil)
	if err != nil {
		return nil, err
	}
	return []Variable{
		{"KUBECONFIG", c.kubeconfig()},
		{"CAPSTAN_CLUSTER", c.Name},
		{"CAPSTAN_REGISTRY", controlplane.RegistryName},
		{"CAPSTAN_BUSYBOX", controlplane.RegistryName + "/" + addons.BusyboxRepository + ":" + addons.BusyboxTag},
		{"CAPSTAN_AUDIT_LOG", filepath.Join(c.dir(controlPlane), controlplane.AuditLog)},
		{"CAPSTAN_KUBELET", filepath.Join(c.dir(letters()[0]), "kubelet")},
		{"CAPSTAN_CROSSPLANE", programs.Path("crossplane", "crossplane")},
		{"PATH", strings.Join([]string{
			programs.Dir("kubernetes"), programs.Dir("crossplane-cli"), os.Getenv("PATH"),
		}, string(os.PathListSeparator))},
	}, nil
}

// Exec replaces this process by a command inside the control plane's network, where the API server, the registry, pods
// and Services can be reached by address and by name. It only returns when that fails.
func (c *Cluster) Exec(ctx context.Context, args []string) error {
	if err := host.CheckRoot(); err != nil {
		return err
	}
	pid, err := c.pid(controlPlane)
	if err != nil {
		return err
	}
	vars, err := c.Environment(ctx)
	if err != nil {
		return err
	}
	for _, v := range vars {
		if err := os.Setenv(v.Name, v.Value); err != nil {
			return fmt.Errorf("cannot set %q: %w", v.Name, err)
		}
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("cannot find a program: %w", err)
	}
	// Namespaces belong to threads; the command inherits them from the thread that calls exec.
	runtime.LockOSThread()
	if err := netns.Enter(netns.Of(pid)); err != nil {
		return err
	}
	if err := c.privateNames(); err != nil {
		return err
	}
	if err := syscall.Exec(path, args, os.Environ()); err != nil {
		return fmt.Errorf("cannot run %q: %w", path, err)
	}
	return nil
}

// privateNames replaces the files that name resolution reads, for this thread and what it becomes.
func (c *Cluster) privateNames() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("cannot create a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make mounts private: %w", err)
	}
	for source, target := range map[string]string{c.hosts(): "/etc/hosts", c.resolver(): "/etc/resolv.conf"} {
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cannot replace %s: %w", target, err)
		}
	}
	return nil
}
