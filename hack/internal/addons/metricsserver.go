// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

// metricsServer shows autoscalers and people what pods use.
type metricsServer struct{}

func (metricsServer) Name() string { return "metrics-server" }

func (metricsServer) Tools() []string { return []string{"metrics-server"} }

func (metricsServer) Apply(ctx context.Context, env *Env) error {
	ref, err := env.Image(ctx, "metrics-server", "metrics-server", image.Spec{User: "65532"})
	if err != nil {
		return err
	}
	return env.Apply(ctx, "metrics-server.yaml", map[string]any{"Image": ref})
}

// WaitReady waits until the API is served, too: an APIService that fails blocks the deletion of every namespace.
func (metricsServer) WaitReady(ctx context.Context, env *Env) error {
	if err := env.Rollout(ctx, "kube-system", "metrics-server"); err != nil {
		return err
	}
	_, err := env.Kubectl(ctx, "wait", "--for=condition=Available", "--timeout=1m", "apiservice/v1beta1.metrics.k8s.io")
	return err
}
