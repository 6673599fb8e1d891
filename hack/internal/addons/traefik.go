// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

// gatewayNamespace holds Traefik and the Gateway that all namespaces share.
const gatewayNamespace = "gateway"

// traefik routes HTTP from one address to the Services of all namespaces, as HTTPRoutes say.
type traefik struct{}

func (traefik) Name() string { return "traefik" }

func (traefik) Tools() []string { return []string{"traefik"} }

func (traefik) Apply(ctx context.Context, env *Env) error {
	// The definitions are from the version that Traefik is compiled with.
	source, err := env.Builder.DependencyDir(ctx, "traefik", "sigs.k8s.io/gateway-api")
	if err != nil {
		return err
	}
	pattern := filepath.Join(source, "config", "crd", "standard", "*.yaml")
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return fmt.Errorf("cannot find the definitions of the Gateway API: nothing at %s", pattern)
	}
	if err := env.Define(ctx, files...); err != nil {
		return err
	}
	ref, err := env.Image(ctx, "traefik", "traefik", image.Spec{User: "65532"})
	if err != nil {
		return err
	}
	return env.Apply(ctx, "traefik.yaml", map[string]any{"Image": ref})
}

// WaitReady waits for the Gateway, too: routes through it work from then on.
func (traefik) WaitReady(ctx context.Context, env *Env) error {
	if err := env.Rollout(ctx, gatewayNamespace, "traefik"); err != nil {
		return err
	}
	_, err := env.Kubectl(ctx, "wait", "--for=condition=Programmed", "--timeout=1m", "-n", gatewayNamespace, "gateway/shared")
	return err
}
