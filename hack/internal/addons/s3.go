// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

// s3 is VersityGW at https://s3.outside.svc, with its data on a volume.
type s3 struct{}

func (s3) Name() string { return "s3" }

func (s3) Tools() []string { return []string{"versitygw"} }

func (s3) Apply(ctx context.Context, env *Env) error {
	ref, err := env.Image(ctx, "versitygw", "versitygw", image.Spec{User: "65532"})
	if err != nil {
		return err
	}
	return env.Apply(ctx, "s3.yaml", map[string]any{"Image": ref})
}

func (s3) WaitReady(ctx context.Context, env *Env) error {
	return env.Rollout(ctx, outsideNamespace, "s3")
}
