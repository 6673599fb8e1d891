// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// commands are the command blocks of a section of a page, in order.
func commands(t *testing.T, name, section string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(os.Getenv("CAPSTAN_ROOT"), "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/%s has no section %q", name, section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var blocks []string
	inside, indent := false, ""
	for line := range strings.Lines(rest) {
		switch trimmed := strings.TrimSpace(line); {
		case !inside && trimmed == "```console":
			inside = true
			indent, _, _ = strings.Cut(line, "`")
			blocks = append(blocks, "")
		case inside && trimmed == "```":
			inside = false
		case inside: // that of the block itself matters in YAML
			blocks[len(blocks)-1] += strings.TrimPrefix(line, indent)
		}
	}

	return blocks
}

// try runs a block of commands in a folder as if pasted into a shell, and returns what it printed.
func try(t *testing.T, folder, block string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", block)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", block, out)

	return string(out), err
}
