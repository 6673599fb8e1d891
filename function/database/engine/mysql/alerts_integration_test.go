// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mysql

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/test/outside"
)

// TestAlerts shows by tests of Prometheus' own tool when alerts are raised and when they are not.
func TestAlerts(t *testing.T) {
	tool, dir := outside.Promtool(t), t.TempDir()
	var rules []map[string]any
	for _, a := range New().Alerts(engine.Watched{Series: `namespace="shop",database="orders-db"`, Replicas: 3, LagSeconds: 60}).Standbys {
		rules = append(rules, map[string]any{"alert": a.Name, "expr": a.Expr, "for": a.For})
	}
	data, err := yaml.Marshal(map[string]any{"groups": []map[string]any{{"name": "orders-db", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"rules.yaml": data, "tests.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), tool, "test", "rules", filepath.Join(dir, "tests.yaml")).CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}
