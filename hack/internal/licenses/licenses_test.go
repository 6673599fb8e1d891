// SPDX-License-Identifier: Apache-2.0

package licenses

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/hack/internal/build"
)

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason  string
		modules []Module
		want    string
	}{
		"Allowed": {"modules under licences of the list pass", []Module{{Path: "a", Licences: []string{"MIT"}}, {Path: "b", Licences: []string{"Apache-2.0", "BSD-3-Clause"}}}, ""},
		"Refused": {
			"each licence of a module has to be in the list",
			[]Module{{Path: "a", Version: "v1.0.0", Licences: []string{"MIT", "AGPL-3.0"}}},
			"a v1.0.0: licence AGPL-3.0 is not among those that are allowed",
		},
		"None": {"without a licence nothing may be passed on", []Module{{Path: "a", Version: "v1.0.0"}}, "a v1.0.0: no known licence"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Check(tc.modules)
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestRead(t *testing.T) {
	mit := `MIT License

Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`
	dir := t.TempDir()
	for name, text := range map[string]string{
		"License.txt": mit + "\n", "NOTICE": "Made by somebody.\n", "license.go": "package a\n", "README.md": mit, "LICENSE.docs": "For documents.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := read("example.org/a", "v1.2.3", dir)
	if err != nil {
		t.Fatal(err)
	}
	want := Module{Path: "example.org/a", Version: "v1.2.3", Licences: []string{"MIT"}, Texts: []string{mit, "Made by somebody."}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("licences and notices count, programs, licences of documents and other files do not (-want +got):\n%s", diff)
	}
}

func TestNotice(t *testing.T) {
	got := string(Notice([]Module{
		{Path: "a", Version: "v1", Texts: []string{"one", "two"}}, {Path: "b", Version: "v2", Texts: []string{"two"}}, {Path: "c", Texts: []string{"one", "one"}},
	}))
	if strings.Count(got, "one") != 1 || strings.Count(got, "two") != 1 || !strings.Contains(got, "a v1\nc\n\none\n") || !strings.Contains(got, "a v1\nb v2\n\ntwo\n") {
		t.Errorf("each text should stand once, below its modules, got:\n%s", got)
	}
}

// TestOf reads a program of this module: the one that runs this test has no path that stays.
func TestOf(t *testing.T) {
	root, err := build.Repository()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "house")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./house")
	cmd.Dir = filepath.Join(root, "hack")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build a program: %v\n%s", err, out)
	}
	modules, err := Of(t.Context(), filepath.Join(root, "hack"), program)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range modules {
		found[m.Path] = strings.Join(m.Licences, " ")
	}
	for path, want := range map[string]string{standardLibrary: "BSD-3-Clause", "github.com/alecthomas/kong": "MIT", "golang.org/x/tools": "BSD-3-Clause"} {
		if found[path] != want {
			t.Errorf("%s should be under %s, got %q", path, want, found[path])
		}
	}
	if err := Check(modules); err != nil {
		t.Error(err)
	}
}
