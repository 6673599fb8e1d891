// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// mlflow is MLflow's tracking server and registry at https://mlflow.outside.svc, with its data on a volume. Its pod borrows
// the Python of this machine: an image of it would have 800 MB.
type mlflow struct{}

func (mlflow) Name() string { return "mlflow" }

func (mlflow) Tools() []string { return []string{"mlflow"} }

func (mlflow) Apply(ctx context.Context, env *Env) error {
	ref, err := busybox(ctx, env)
	if err != nil {
		return err
	}
	serve, err := os.ReadFile(filepath.Join(env.Builder.Source, "tools", "mlflow", "serve.py"))
	if err != nil {
		return fmt.Errorf("cannot read how MLflow is started: %w", err)
	}
	// JSON is YAML on one line.
	quoted, err := json.Marshal(string(serve))
	if err != nil {
		return fmt.Errorf("cannot quote how MLflow is started: %w", err)
	}
	return env.Apply(ctx, "mlflow.yaml", map[string]any{
		"Image": ref, "Serve": string(quoted), "Environment": env.Programs.Inside().Dir("mlflow"), "System": systemFolders(),
	})
}

func (mlflow) WaitReady(ctx context.Context, env *Env) error {
	return env.Rollout(ctx, outsideNamespace, "mlflow")
}

// systemFolders are the folders of this machine that its Python consists of. Which have the loader depends on the architecture.
func systemFolders() []string {
	var found []string
	for _, dir := range []string{"/usr", "/lib", "/lib64"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			found = append(found, dir)
		}
	}
	return found
}
