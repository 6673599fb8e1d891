// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// source is the folder hack, seen from this package.
const source = "../.."

func TestLinkedVersionsArePinned(t *testing.T) {
	b := &Builder{Source: source}
	for _, tool := range Tools() {
		t.Run(tool.Name, func(t *testing.T) {
			version, err := b.Version(tool.Name)
			if err != nil {
				t.Fatal(err)
			}
			if tool.LinkFlags != "" && !strings.Contains(tool.LinkFlags, "ersion="+version) {
				t.Errorf("go.mod pins %s, but the linker writes %q into the program", version, tool.LinkFlags)
			}
		})
	}
}

func TestFolderFollowsContent(t *testing.T) {
	dir := t.TempDir()
	module := filepath.Join(dir, "tools", "etcd")
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(module, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(module, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module x\n")
	write("go.sum", "")
	folder := func(b *Builder, tool Tool) string {
		t.Helper()
		f, err := b.folder(tool)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	b := &Builder{Source: dir, goVersion: "go1.26.8"}
	tool := Tool{Name: "etcd"}
	first := folder(b, tool)
	if again := folder(b, tool); again != first {
		t.Errorf("the same content has two folders: %s and %s", first, again)
	}
	if newer := folder(&Builder{Source: dir, goVersion: "go1.26.9"}, tool); newer == first {
		t.Error("another compiler builds into the same folder")
	}
	if tagged := folder(b, Tool{Name: "etcd", Packages: []string{"x"}}); tagged == first {
		t.Error("other programs build into the same folder")
	}
	write("go.sum", "changed")
	if changed := folder(b, tool); changed == first {
		t.Error("other modules build into the same folder")
	}
}

// The compiler's cache keeps a package once for each version of it, so that modules with pins of their own agree with the shared ones
// wherever they can. A module may ask for something newer.
func TestVersionsAreAligned(t *testing.T) {
	pins := func(folder string) map[string]string {
		t.Helper()
		path := filepath.Join(source, "tools", folder, "go.mod")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		mod, err := modfile.Parse(path, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		versions := map[string]string{}
		for _, r := range mod.Require {
			versions[r.Mod.Path] = r.Mod.Version
		}
		return versions
	}
	// Why these are kept is in hack/tools/align.
	kept := map[string]*regexp.Regexp{
		"../..":   regexp.MustCompile(`^github.com/(crossplane|upbound|aws|jackc|prometheus/prometheus|prometheus-operator)|^sigs.k8s.io/gateway-api`),
		"traefik": regexp.MustCompile(`^go.opentelemetry.io/|^sigs.k8s.io/gateway-api`),
	}
	common := pins(shared)
	for _, name := range []string{"../..", "..", "alertmanager", "cert-manager", "containerd", "traefik"} {
		for module, version := range pins(name) {
			if k := kept[name]; k != nil && k.MatchString(module) {
				continue
			}
			if want, ok := common[module]; ok && semver.Compare(version, want) < 0 {
				t.Errorf("%s has %s %s, the shared module has %s: run hack/tools/align", name, module, version, want)
			}
		}
	}
}

func TestSharedPackagesArePinned(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(source, "tools", shared, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	var directives []string
	for _, tool := range mod.Tool {
		directives = append(directives, tool.Path)
	}
	for _, tool := range Tools() {
		for _, pkg := range tool.Packages {
			if tool.Pins == shared && !strings.HasPrefix(pkg, "./") && !slices.Contains(directives, pkg) {
				t.Errorf("%s is no tool directive of the shared module, so that go mod tidy would drop its dependencies", pkg)
			}
		}
	}
}
