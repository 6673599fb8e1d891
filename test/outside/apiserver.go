// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// APIServer starts an etcd and an API server with the provider's CRDs, and returns an administrator's configuration for
// it. Nothing else runs: no controller deletes a namespace or collects garbage.
func APIServer(tb testing.TB) *rest.Config {
	tb.Helper()
	env := &envtest.Environment{
		CRDDirectoryPaths:        []string{filepath.Join(repository(tb), "package", "provider", "crds")},
		ErrorIfCRDPathMissing:    true,
		UseExistingCluster:       new(false), // with any environment
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
	}
	env.ControlPlane.Etcd = &envtest.Etcd{Path: launcher(tb, "etcd", "server")}
	env.ControlPlane.GetAPIServer().Path = launcher(tb, "kubernetes", "kube-apiserver")

	stop, stopped := make(chan struct{}), make(chan error, 1)
	type result struct {
		cfg *rest.Config
		err error
	}
	started := make(chan result)
	go func() {
		// Both processes must end with the thread that starts them, and the thread must outlive them (see
		// process.spawn).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cfg, err := env.Start()
		started <- result{cfg, err}
		if err == nil {
			<-stop
		}
		stopped <- env.Stop()
	}()
	r := <-started
	if r.err != nil {
		<-stopped
		tb.Fatalf("cannot start an API server: %v", r.err)
	}
	tb.Cleanup(func() {
		close(stop)
		if err := <-stopped; err != nil {
			tb.Errorf("cannot stop the API server: %v", err)
		}
	})
	// The client's own limits would hide how a provider behaves with many objects.
	r.cfg.QPS, r.cfg.Burst = -1, -1
	return r.cfg
}

// launcher returns a script that runs a program so that it dies with the test: envtest accepts only a path.
func launcher(tb testing.TB, tool, name string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	script := fmt.Sprintf("#!/bin/sh\nexec %s'%s' \"$@\"\n", mortal, program(tb, tool, name))
	//nolint:gosec // it has to be executable
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		tb.Fatalf("cannot write the launcher of %q: %v", name, err)
	}
	return path
}
