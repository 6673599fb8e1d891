// SPDX-License-Identifier: Apache-2.0

package download_test

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/download"
)

// source is the folder hack, seen from this package.
const source = "../.."

func embedded(t *testing.T) *download.Downloader {
	t.Helper()
	for _, variable := range []string{download.ModeVariable, download.MirrorVariable, download.PinsVariable} {
		t.Setenv(variable, "")
	}
	d, err := download.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// compiled are the tools that have a Go module, sorted.
func compiled() []string {
	var names []string
	for _, tool := range build.Tools() {
		if !tool.Python {
			names = append(names, tool.Name)
		}
	}
	slices.Sort(names)
	return names
}

func version(t *testing.T, tool string) string {
	t.Helper()
	v, err := (&build.Builder{Source: source}).Version(tool)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestEveryToolIsInTheCatalogue with the programs that are compiled without it.
func TestEveryToolIsInTheCatalogue(t *testing.T) {
	d := embedded(t)
	for _, tool := range d.Tools() {
		if !slices.Contains(compiled(), tool) {
			t.Errorf("%q is no tool", tool)
		}
	}
	for _, tool := range compiled() {
		t.Run(tool, func(t *testing.T) {
			for _, arch := range download.Architectures() {
				files, err := d.Files(tool, version(t, tool), arch)
				if errors.Is(err, download.ErrNotPublished) && !strings.Contains(err.Error(), "not in the catalogue") {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				var programs []string
				for _, f := range files {
					programs = append(programs, slices.Collect(maps.Keys(f.Members))...)
					if text := fmt.Sprint(f.URL, f.Sums, f.Members); strings.ContainsAny(text, "{}") {
						t.Errorf("a placeholder is unknown: %s", text)
					}
					for _, address := range []string{f.URL, f.Sums} {
						if parsed, err := url.Parse(address); err != nil || parsed.Scheme != "https" || parsed.RawQuery != "" {
							t.Errorf("%q is no plain https address (%v)", address, err)
						}
					}
					if !f.IsArchive() && len(f.Members) != 1 {
						t.Errorf("%s is no archive and has %v", f.URL, f.Members)
					}
				}
				slices.Sort(programs)
				if diff := cmp.Diff(goPrograms(t, tool), programs); diff != "" {
					t.Errorf("%s: a download has other programs than a build: -build, +download:\n%s", arch, diff)
				}
			}
		})
	}
}

var major = regexp.MustCompile(`^v\d+$`)

// goPrograms are the names that the Go toolchain gives the programs of a tool.
func goPrograms(t *testing.T, tool string) []string {
	t.Helper()
	all := build.Tools()
	packages := all[slices.IndexFunc(all, func(b build.Tool) bool { return b.Name == tool })].Packages
	if len(packages) == 0 {
		file := filepath.Join(source, "tools", tool, "go.mod")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		mod, err := modfile.Parse(file, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, directive := range mod.Tool {
			packages = append(packages, directive.Path)
		}
	}
	var names []string
	for _, pkg := range packages {
		name := path.Base(pkg)
		if major.MatchString(name) {
			name = path.Base(path.Dir(pkg))
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestPinsAreOfTheVersionsThatAreBuilt, so that a tool is the same whether it was downloaded or built.
func TestPinsAreOfTheVersionsThatAreBuilt(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(download.PinsFile)))
	if err != nil {
		t.Fatal(err)
	}
	pins, err := download.ParsePins(data)
	if err != nil {
		t.Fatal(err)
	}
	d := embedded(t)
	seen := map[string]bool{}
	for _, pin := range pins {
		if v := version(t, pin.Tool); v != pin.Version {
			t.Errorf("%s is pinned in version %s, and built in %s: run `go -C hack run ./releases pin %s`", pin.URL, pin.Version, v, pin.Tool)
			continue
		}
		files, err := d.Files(pin.Tool, pin.Version, pin.Arch)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(f download.File) bool { return f.URL == pin.URL }) {
			t.Errorf("%s is pinned, and no file of %s for %s", pin.URL, pin.Tool, pin.Arch)
		}
		if seen[pin.URL] || pin.Source == "" {
			t.Errorf("%s is pinned twice or without a source", pin.URL)
		}
		seen[pin.URL] = true
	}
	if len(pins) == 0 {
		t.Error("nothing is pinned")
	}
}

// TestReadme compares the table in README.md with the catalogue.
func TestReadme(t *testing.T) {
	d := embedded(t)
	var want strings.Builder
	for _, tool := range compiled() {
		files, err := d.Files(tool, version(t, tool), "amd64")
		if err != nil {
			_, reason, _ := strings.Cut(err.Error(), ": ")
			fmt.Fprintf(&want, "| %s | built | %s |\n", tool, reason)
			continue
		}
		hosts, programs := map[string]bool{}, []string{}
		for _, f := range files {
			address, err := url.Parse(f.URL)
			if err != nil {
				t.Fatal(err)
			}
			hosts[address.Host] = true
			programs = append(programs, slices.Collect(maps.Keys(f.Members))...)
		}
		slices.Sort(programs)
		fmt.Fprintf(&want, "| %s | %s | `%s` |\n", tool, strings.Join(slices.Sorted(maps.Keys(hosts)), ", "), strings.Join(programs, "`, `"))
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), want.String()) {
		t.Errorf("the table in README.md is not that of releases.yaml:\n%s", want.String())
	}
}
