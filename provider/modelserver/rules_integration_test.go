// SPDX-License-Identifier: Apache-2.0

//go:build integration

package modelserver

import (
	"os/exec"
	"testing"

	"github.com/capstan-dev/capstan/test/outside"
)

// TestRules has Prometheus' own tool evaluate the rules as they are shipped.
func TestRules(t *testing.T) {
	tool := outside.Promtool(t)
	for _, args := range [][]string{
		{"check", "rules", "../../package/monitoring/rules.yaml"},
		{"test", "rules", "testdata/rules.yaml"},
	} {
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
