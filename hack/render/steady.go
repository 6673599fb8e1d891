// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// fileSteady of a scenario is its golden report of where it ends.
const fileSteady = "steady.txt"

// steady reports where a composite resource ends as a new one, as `kubectl capstan plan --offline` does: it is the same program, and the
// planner is in it. What the scenario requires is part of the manifest. What is observed is of a later time than the beginning, and is not.
func (r *renderer) steady(ctx context.Context, s scenario) ([]byte, error) {
	plugin, err := r.plugin(ctx)
	if err != nil {
		return nil, err
	}
	files := []string{s.xr}
	if s.required != "" {
		more, err := filepath.Glob(filepath.Join(s.required, "*.yaml"))
		if err != nil {
			return nil, fmt.Errorf("cannot list what is required: %w", err)
		}
		files = append(files, more...)
	}
	args := []string{"plan", "--offline", "--now=" + r.now}
	for _, f := range files {
		args = append(args, "--filename="+f)
	}
	cmd := exec.CommandContext(ctx, plugin, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && stdout.Len() == 0 { // A spec that is not accepted has a plan, too.
		return nil, fmt.Errorf("cannot plan: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// plugin of kubectl, built once.
func (r *renderer) plugin(ctx context.Context) (string, error) {
	program := filepath.Join(r.dir, "kubectl-capstan")
	if r.built {
		return program, nil
	}
	compile := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, "./plugin")
	compile.Dir = r.root
	if out, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the plugin: %w\n%s", err, out)
	}
	r.built = true
	return program, nil
}
