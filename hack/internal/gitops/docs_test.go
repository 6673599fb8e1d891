// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestQuickstart holds the quickstart to what its first sentence promises, and to what there is to download.
func TestQuickstart(t *testing.T) {
	page := string(read(t, "docs/quickstart-kind.md"))
	_, rest, _ := strings.Cut(page, "```console\n")
	block, _, _ := strings.Cut(rest, "```")
	if lines := strings.Count(block, "\n"); lines == 0 || lines > 8 {
		t.Errorf("the recipe has %d lines, and the page promises eight commands", lines)
	}
	for _, part := range []string{"platform.yaml", "configuration.yaml"} {
		if !strings.Contains(block, part) {
			t.Errorf("the recipe does not apply %s", part)
		}
	}
	// The Crossplane that Capstan is tested with.
	tested := regexp.MustCompile(`github.com/crossplane/crossplane/v2 v(\S+)`).FindSubmatch(read(t, "hack/tools/cluster/go.mod"))
	if tested == nil || !strings.Contains(block, "--version "+string(tested[1])+" ") {
		t.Errorf("the recipe installs another Crossplane than %q", tested)
	}
}

// TestDownloads shows that docs and overlays name only files that a release has, and short names of kinds only where they are
// no other's.
func TestDownloads(t *testing.T) {
	files := []string{"platform.yaml", "configuration.yaml", "verification.yaml", "roles.yaml", "mirror.yaml"}
	for _, page := range []string{"docs/quickstart-kind.md", "docs/gitops.md", "docs/versions.md", "install/release/kustomization.yaml"} {
		content := string(read(t, page))
		for _, m := range regexp.MustCompile(`releases/download/v[0-9.]+/(\S+)`).FindAllStringSubmatch(content, -1) {
			if !slices.Contains(files, m[1]) {
				t.Errorf("%s: a release has no %s", page, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`kubectl [^\n`+"`"+`]*[ ,](configurations?|functions?|providers?)(,|/|\s)`).FindAllString(content, -1) {
			t.Errorf("%s: %q has a short name that other products have, too", page, m)
		}
	}
}
