// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"

	"github.com/capstan-dev/capstan/hack/internal/image"
	"github.com/capstan-dev/capstan/hack/internal/node"
)

// storage is the default StorageClass: folders on the node of the first pod that uses a claim.
type storage struct{}

func (storage) Name() string { return "storage" }

func (storage) Tools() []string { return []string{"local-path-provisioner"} }

func (storage) Apply(ctx context.Context, env *Env) error {
	ref, err := env.Image(ctx, "local-path-provisioner", "local-path-provisioner", image.Spec{User: "65532"})
	if err != nil {
		return err
	}
	helper, err := busybox(ctx, env)
	if err != nil {
		return err
	}
	return env.Apply(ctx, "storage.yaml", map[string]any{"Image": ref, "Helper": helper, "Volumes": node.Volumes})
}

func (storage) WaitReady(ctx context.Context, env *Env) error {
	return env.Rollout(ctx, "local-path-storage", "local-path-provisioner")
}
