// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	if tagged := folder(b, Tool{Name: "etcd", Tags: "x"}); tagged == first {
		t.Error("other flags build into the same folder")
	}
	write("go.sum", "changed")
	if changed := folder(b, tool); changed == first {
		t.Error("other modules build into the same folder")
	}
}
