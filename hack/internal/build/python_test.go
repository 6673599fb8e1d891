// SPDX-License-Identifier: Apache-2.0

package build

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// fakePython makes environments whose pip says what it was called with, leaves one file, and fails while a file "broken" lies
// beside the interpreter.
const fakePython = `#!/bin/sh
here=$(dirname "$0")
mkdir -p "$3/bin"
cat > "$3/bin/python3" <<END
#!/bin/sh
echo "Collecting one"
echo "\$*" >> "$here/calls"
echo half > "$3/package"
[ ! -e "$here/broken" ] || { echo "no such hash" >&2; exit 1; }
echo whole > "$3/package"
END
chmod +x "$3/bin/python3"
`

func TestInstall(t *testing.T) {
	dir := t.TempDir()
	pins, broken := filepath.Join(dir, "tools", "moto", requirements), filepath.Join(dir, "broken")
	write := func(path, content string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	write(pins, "moto==5.2.5 \\\n    --hash=sha256:0\n", 0o600)
	write(filepath.Join(dir, "python3"), fakePython, 0o700)
	b := &Builder{Source: dir, Cache: filepath.Join(dir, "cache"), python: filepath.Join(dir, "python3")}
	folder := func() string {
		t.Helper()
		f, err := b.Dir("moto")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	ensure := func() error { return b.Ensure(t.Context(), progress.New(io.Discard), "moto") }

	write(broken, "", 0o600)
	if err := ensure(); err == nil || !strings.Contains(err.Error(), "no such hash") {
		t.Fatalf("an installation that fails ends with %v, want what pip says", err)
	}
	if got := read(filepath.Join(folder(), "package")); got != "half\n" {
		t.Fatalf("the test is wrong: nothing half was left, but %q", got)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(folder(), "stale"), "", 0o600)
	if err := ensure(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder(), "stale")); err == nil {
		t.Error("an environment that was left half is built upon")
	}
	if got := read(filepath.Join(folder(), "package")); got != "whole\n" {
		t.Errorf("an environment that was left half is not made again: %q", got)
	}
	calls := read(filepath.Join(dir, "calls"))
	if err := ensure(); err != nil || read(filepath.Join(dir, "calls")) != calls {
		t.Errorf("an environment that is whole is made again (%v)", err)
	}
	if want := "--require-hashes --only-binary=:all: --requirement " + pins; !strings.Contains(calls, want) {
		t.Errorf("pip is not called with %q but with %q", want, calls)
	}

	before := folder()
	write(pins, "moto==5.2.6 \\\n    --hash=sha256:1\n", 0o600)
	if folder() == before {
		t.Error("other packages go to the same folder")
	}
	if version, err := b.Version("moto"); err != nil || version != "5.2.6" {
		t.Errorf("the pinned version is %q (%v)", version, err)
	}
}

func TestRequirementsAreComplete(t *testing.T) {
	b := &Builder{Source: source}
	for _, tool := range Tools() {
		if !tool.Python {
			continue
		}
		t.Run(tool.Name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(b.module(tool), requirements))
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(string(data), "\\\n", "")
			for entry := range strings.SplitSeq(text, "\n") {
				if entry == "" || strings.HasPrefix(strings.TrimSpace(entry), "#") {
					continue
				}
				if source, ok := strings.CutPrefix(entry, "--no-binary "); ok {
					if !strings.Contains(text, "\n"+source+"==") {
						t.Errorf("only a pinned package may be no wheel: %s", entry)
					}
					continue
				}
				if !strings.Contains(entry, "==") || !strings.Contains(entry, "--hash=sha256:") {
					t.Errorf("not pinned by version and hash: %s", entry)
				}
			}
		})
	}
}
