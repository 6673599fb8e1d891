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

// crossplane is Crossplane's core from its own chart, which comes with the Go module of the same version.
type crossplane struct{}

func (crossplane) Name() string { return "crossplane" }

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
	repository, _, _ := strings.Cut(ref, ":"+version)

	tmp, err := os.MkdirTemp("", "capstan-chart-")
	if err != nil {
		return fmt.Errorf("cannot make room for the chart: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	number := strings.TrimPrefix(version, "v")
	if _, err := env.Helm(ctx, "package", filepath.Join(source, "cluster", "charts", "crossplane"),
		"--destination="+tmp, "--version="+number, "--app-version="+number); err != nil {
		return err
	}
	_, err = env.Helm(ctx, "upgrade", "--install", "crossplane", filepath.Join(tmp, "crossplane-"+number+".tgz"),
		"--namespace=crossplane-system", "--create-namespace",
		"--set=image.repository="+repository, "--set=image.tag="+version,
		// Only kinds that an activation policy names are served; packages bring their own policies.
		"--set-json=provider.defaultActivations=[]")
	return err
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
