// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"

	"github.com/capstan-dev/capstan/hack/internal/image"
	"github.com/capstan-dev/capstan/hack/internal/network"
)

// coreDNS resolves the names of Services, and the registry's.
type coreDNS struct{}

func (coreDNS) Name() string { return "coredns" }

func (coreDNS) Tools() []string { return []string{"coredns"} }

func (coreDNS) Apply(ctx context.Context, env *Env) error {
	ref, err := env.Image(ctx, "coredns", "coredns", image.Spec{User: "65532"})
	if err != nil {
		return err
	}
	return env.Apply(ctx, "coredns.yaml", map[string]any{
		"Image": ref, "Address": network.DNS, "ControlPlane": network.ControlPlane,
		// Names survive the loss of a node where there is another.
		"Replicas": min(2, len(env.Nodes)),
	})
}

func (coreDNS) WaitReady(ctx context.Context, env *Env) error {
	return env.Rollout(ctx, "kube-system", "coredns")
}
