// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTutorials does what the two tutorials say, in their order and with their own commands, and expects what they promise.
func TestTutorials(t *testing.T) {
	t.Parallel()
	t.Run("Algorithm", func(t *testing.T) {
		t.Parallel()
		p := tutorial(t, "tutorial-algorithm.md", "tutorial-algorithm")
		p.do(t, "Prepare")
		p.do(t, "Create it", "algorithm.capstan.dev/reco", "deployment.apps/reco-a", "poddisruptionbudget.policy/reco-a")
		p.do(t, "Call it", `"broken":""`)
		p.do(t, "Break it", "ImagePullFailed", `"broken":""`)
		p.do(t, "Repair it")
		p.do(t, "Let Prometheus decide", "RolledBack", "MetricFailed")
		p.do(t, "Remove it")
	})
	t.Run("Database", func(t *testing.T) {
		t.Parallel()
		p := tutorial(t, "tutorial-database.md", "tutorial-database")
		p.do(t, "Create it", "2 of 2 members ready")
		p.do(t, "Use it", "multi-host-uri")
		p.do(t, "Lose the leader", "1000")
		p.do(t, "Back it up, and have it proved", "every check passed")
		p.do(t, "Delete rows, and look at the moment before", "DELETE 990", "1000")
	})
}

// A page is a page of docs whose commands use the namespace "tutorial".
type page struct{ name, namespace, path string }

func tutorial(t *testing.T, name, ns string) page {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if t.Failed() {
			t.Log(report(ctx, ns))
			out, _ := exec.CommandContext(ctx, "kubectl", "--namespace="+ns, "describe", "databases,pods").CombinedOutput()
			t.Logf("%s", out)
		}
		_ = kube.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	})

	return page{name: name, namespace: ns, path: pluginOf(t, ns).folder + string(filepath.ListSeparator) + os.Getenv("PATH")}
}

// do the commands of a section in one shell, which have to succeed and to print these words.
func (p page) do(t *testing.T, section string, words ...string) {
	t.Helper()
	blocks := strings.Join(commands(t, p.name, section), "")
	if blocks == "" {
		t.Fatalf("docs/%s has no commands below %q", p.name, section)
	}
	blocks = strings.NewReplacer("ghcr.io/capstan-dev/demo-algorithm:v0.1.0", image(), "tutorial", p.namespace).Replace(blocks)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", blocks)
	cmd.Env = append(os.Environ(), "PATH="+p.path, "IMAGE="+image())
	out, err := cmd.CombinedOutput()
	t.Logf("%s:\n%s\n%s", section, blocks, out)
	if err != nil {
		t.Fatalf("%q of docs/%s: %v", section, p.name, err)
	}
	for _, w := range words {
		if !strings.Contains(string(out), w) {
			t.Errorf("%q of docs/%s does not print %q", section, p.name, w)
		}
	}
}
