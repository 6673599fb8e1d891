// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"path/filepath"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

// monitoringNamespace holds Prometheus, its operator and prometheus-adapter.
const monitoringNamespace = "monitoring"

// prometheusOperator makes Prometheus and its configuration of objects that anybody may have in their own namespace.
type prometheusOperator struct{}

func (prometheusOperator) Name() string { return "prometheus-operator" }

func (prometheusOperator) Tools() []string { return []string{"prometheus-operator"} }

func (prometheusOperator) Apply(ctx context.Context, env *Env) error {
	source, err := env.Builder.ModuleDir(ctx, "prometheus-operator")
	if err != nil {
		return err
	}
	// Those that it can do without (Alertmanager, Thanos, agents, ScrapeConfig) are 3 MB for the API server to read.
	var files []string
	for _, plural := range []string{"prometheuses", "servicemonitors", "podmonitors", "probes", "prometheusrules"} {
		files = append(files, filepath.Join(source, "example", "prometheus-operator-crd", "monitoring.coreos.com_"+plural+".yaml"))
	}
	if err := env.Define(ctx, files...); err != nil {
		return err
	}
	ref, err := env.Image(ctx, "prometheus-operator", "operator", image.Spec{User: "65532"})
	if err != nil {
		return err
	}
	// The operator names the command with its path.
	reloader, err := env.ImageAs(ctx, "prometheus-config-reloader", "/bin/prometheus-config-reloader",
		"prometheus-operator", "prometheus-config-reloader", image.Spec{User: "65532"})
	if err != nil {
		return err
	}
	return env.Apply(ctx, "prometheus-operator.yaml", map[string]any{"Image": ref, "Reloader": reloader})
}

func (prometheusOperator) WaitReady(ctx context.Context, env *Env) error {
	return env.Rollout(ctx, monitoringNamespace, "prometheus-operator")
}
