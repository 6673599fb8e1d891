// SPDX-License-Identifier: Apache-2.0

//go:build integration

package modelserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/test/outside"
)

// TestComposedAlerts has Prometheus' own tool check the rules of every example, and shows by its tests when those of an error
// budget are raised and when they are not.
func TestComposedAlerts(t *testing.T) {
	tool, dir := outside.Promtool(t), t.TempDir()
	for name, groups := range composed(t) {
		data, err := yaml.Marshal(map[string]any{"groups": groups})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), tool, "check", "rules", file).CombinedOutput(); err != nil {
			t.Errorf("promtool check rules: %s: %v\n%s", name, err, out)
		}
	}
	tests, err := os.ReadFile("testdata/slo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tests.yaml")
	if err := os.WriteFile(file, tests, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), tool, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}
