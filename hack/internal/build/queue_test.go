// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/hack/internal/progress"
	"github.com/capstan-dev/capstan/hack/internal/testfile"
)

// project writes programs as modules of their own below a folder hack, and returns a Builder of them.
func project(t *testing.T, programs map[string]string) *Builder {
	t.Helper()
	dir := t.TempDir()
	b := &Builder{Source: dir, Cache: filepath.Join(dir, "cache"), goVersion: "go1.26.8"}
	for _, name := range []string{"first", "second"} {
		content, ok := programs[name]
		if !ok {
			continue
		}
		b.Tools = append(b.Tools, Tool{Name: name, Packages: []string{"."}, Main: "."})
		for file, data := range map[string]string{
			"go.mod": "module example.org/" + name + "\n\ngo 1.26.0\n", "go.sum": "", "main.go": content,
		} {
			testfile.Write(t, dir, filepath.Join("tools", name, file), data)
		}
	}
	return b
}

const (
	good = "package main\n\nfunc main() { println(\"here\") }\n"
	bad  = "package main\n\nfunc main() { return 1 }\n"
)

func TestQueue(t *testing.T) {
	cases := map[string]struct {
		reason   string
		programs map[string]string
		wait     []string
		want     string
	}{
		"Both": {
			reason:   "All programs are made.",
			programs: map[string]string{"first": good, "second": good},
			wait:     []string{"first", "second"},
		},
		"Fails": {
			reason:   "Who waits for a program that does not compile hears what the compiler says.",
			programs: map[string]string{"first": good, "second": bad},
			wait:     []string{"second"},
			want:     "too many return values",
		},
		"Unasked": {
			reason:   "Waiting for what nobody asked for would never end.",
			programs: map[string]string{"first": good},
			wait:     []string{"second"},
			want:     "was not requested",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := project(t, tc.programs)
			var names []string
			for _, tool := range b.Tools {
				names = append(names, tool.Name)
			}
			q, err := b.Start(t.Context(), progress.New(io.Discard), names...)
			if err != nil {
				t.Fatal(err)
			}
			defer q.Stop()
			err = q.Wait(t.Context(), tc.wait...)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("%s: got %v, want an error with %q", tc.reason, err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			for _, name := range tc.wait {
				dir, err := b.Dir(name)
				if err != nil {
					t.Fatal(err)
				}
				out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name)).CombinedOutput()
				if err != nil || string(out) != "here\n" {
					t.Errorf("%s: program %s prints %q, %v", tc.reason, name, out, err)
				}
			}
		})
	}
}

func TestQueueSaysWhatItMakes(t *testing.T) {
	var out bytes.Buffer
	b := project(t, map[string]string{"first": good, "second": good})
	for range 2 {
		if err := b.Ensure(t.Context(), progress.New(&out), "first", "second"); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"2 programs are not in the cache yet: first, second", "compile first, 1 of 2", "link second"} {
		if n := strings.Count(out.String(), want); n != 1 {
			t.Errorf("%q is printed %d times, want once, by the first of two runs:\n%s", want, n, out.String())
		}
	}
}

func TestPruned(t *testing.T) {
	const program = "package main\n\nimport \"golang.org/x/mod/semver\"\n\nfunc main() { println(semver.Canonical(\"v1\")) }\n"
	b := project(t, map[string]string{"first": program})
	b.Tools[0].Pruned = []Pruned{{Module: "golang.org/x/mod", Package: "semver", Stub: "pruned/semver.go"}}
	module := filepath.Join(b.Source, "tools", "first")
	content := "package semver\n\n// Canonical is not what it was.\nfunc Canonical(string) string { return \"stub\" }\n"
	testfile.Write(t, module, filepath.Join("pruned", "semver.go"), content)
	for _, args := range [][]string{{"mod", "edit", "-require=golang.org/x/mod@v0.41.0"}, {"mod", "tidy"}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = module
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v: %s", args, err, out)
		}
	}
	if err := b.Ensure(t.Context(), progress.New(io.Discard), "first"); err != nil {
		t.Fatal(err)
	}
	dir, err := b.Dir("first")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "first")).CombinedOutput()
	if err != nil || string(out) != "stub\n" {
		t.Errorf("got %q, %v, want what the stub returns", out, err)
	}
}
