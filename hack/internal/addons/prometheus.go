// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

// prometheus is one Prometheus for everybody, at http://prometheus.monitoring.svc:9090. What a namespace asks it to scrape or
// to compute stays within that namespace.
type prometheus struct{}

func (prometheus) Name() string { return "prometheus" }

func (prometheus) Tools() []string { return []string{"prometheus"} }

func (prometheus) Apply(ctx context.Context, env *Env) error {
	source, err := env.Builder.ModuleDir(ctx, "prometheus")
	if err != nil {
		return err
	}
	// Its Go module counts differently: v0.315.0 is 3.15.0. The operator writes what that version understands.
	version, err := os.ReadFile(filepath.Join(source, "VERSION"))
	if err != nil {
		return fmt.Errorf("cannot read the version of Prometheus: %w", err)
	}
	// The operator mounts the data at /prometheus.
	ref, err := env.ImageAs(ctx, "prometheus", "/bin/prometheus", "prometheus", "prometheus", image.Spec{User: "65532"})
	if err != nil {
		return err
	}
	return env.Apply(ctx, "prometheus.yaml", map[string]any{"Image": ref, "Version": strings.TrimSpace(string(version))})
}

// WaitReady waits for the operator to describe the pod, too.
func (prometheus) WaitReady(ctx context.Context, env *Env) error {
	const set = "statefulset/prometheus-prometheus"
	if _, err := env.Kubectl(ctx, "wait", "--for=create", "--timeout=1m", "-n", monitoringNamespace, set); err != nil {
		return err
	}
	_, err := env.Kubectl(ctx, "rollout", "status", "--timeout=5m", "-n", monitoringNamespace, set)
	return err
}
