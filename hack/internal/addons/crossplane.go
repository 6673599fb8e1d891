// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"path/filepath"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

// crossplane is Crossplane's core. Its manifest is what its own chart renders (hack/charts).
type crossplane struct{}

func (crossplane) Name() string { return "crossplane" }

func (crossplane) Tools() []string { return []string{"crossplane"} }

func (crossplane) Apply(ctx context.Context, env *Env) error {
	source, err := env.Builder.ModuleDir(ctx, "crossplane")
	if err != nil {
		return err
	}
	version, err := env.Builder.Version("crossplane")
	if err != nil {
		return err
	}
	ref, err := crossplaneImage(ctx, env, filepath.Join(source, "cluster"), version)
	if err != nil {
		return err
	}
	return env.Apply(ctx, "crossplane.yaml", map[string]any{"core": ref})
}

func (crossplane) WaitReady(ctx context.Context, env *Env) error {
	for _, deployment := range []string{"crossplane", "crossplane-rbac-manager"} {
		if err := env.Rollout(ctx, "crossplane-system", deployment); err != nil {
			return err
		}
	}
	return nil
}

// crossplaneImage has the definitions that the init container installs beside the program. The command line refuses to
// validate with an image without labels.
func crossplaneImage(ctx context.Context, env *Env, source, version string) (string, error) {
	spec := image.Spec{User: "65532", Labels: map[string]string{"org.opencontainers.image.version": version}}
	for _, dir := range []string{"crds", "webhookconfigurations"} {
		files, err := image.Tree(filepath.Join(source, dir), "/"+dir)
		if err != nil {
			return "", err
		}
		spec.Files = append(spec.Files, files...)
	}
	return env.Image(ctx, "crossplane", "crossplane", spec)
}
