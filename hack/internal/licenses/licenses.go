// SPDX-License-Identifier: Apache-2.0

// Package licenses says under which licences the modules in a Go program are, and collects their texts: who publishes the program has to
// publish them, too.
package licenses

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// Allowed licences, by their SPDX identifiers: those that let others use a program for every purpose, and ask for no more than their text and
// for changes of their own files.
var Allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// leastCoverage is the part of a file in percent that the texts of known licences have to make up.
const leastCoverage = 75

// standardLibrary is the name of Go's own packages in lists of modules.
const standardLibrary = "std"

// A Module is in a program.
type Module struct {
	Path, Version string
	// Licences are the SPDX identifiers of all that its texts name, in their order.
	Licences []string
	// Texts are the files with licences and notices in its folder.
	Texts []string
}

// Of lists the modules in a Go program, sorted by path. It reads them where the go command keeps them, from the module at root.
func Of(ctx context.Context, root, program string) ([]Module, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("cannot read which modules are in %q: %w", program, err)
	}
	args := []string{"list", "-m", "-json"}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("cannot find the licence of %s, which is replaced", m.Path)
		}
		args = append(args, m.Path+"@"+m.Version)
	}
	modules, err := standard(ctx)
	if err != nil {
		return nil, err
	}
	if len(info.Deps) == 0 {
		return modules, nil
	}
	out, err := goCommand(ctx, root, args...)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct {
			Path    string `json:"Path"`
			Version string `json:"Version"`
			Dir     string `json:"Dir"`
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("cannot read the list of modules: %w", err)
		}
		if m.Dir == "" {
			return nil, fmt.Errorf("cannot find the files of %s %s: run go mod download", m.Path, m.Version)
		}
		found, err := read(m.Path, m.Version, m.Dir)
		if err != nil {
			return nil, err
		}
		modules = append(modules, found)
	}
	slices.SortFunc(modules, func(a, b Module) int { return cmp.Compare(a.Path, b.Path) })
	return modules, nil
}

// standard library of Go, which is in every program.
func standard(ctx context.Context) ([]Module, error) {
	out, err := goCommand(ctx, ".", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	dir, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	m, err := read(standardLibrary, version, dir)
	return []Module{m}, err
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var errs bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot run go %s: %w: %s", strings.Join(args[:2], " "), err, errs.String())
	}
	return out, nil
}

// read the licences in the folder of a module.
func read(path, version, dir string) (Module, error) {
	m := Module{Path: path, Version: version}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return m, fmt.Errorf("cannot read the files of %s: %w", path, err)
	}
	for _, e := range entries {
		if !named(e) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return m, fmt.Errorf("cannot read a licence of %s: %w", path, err)
		}
		m.Texts = append(m.Texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
		if !startsLike(e.Name(), licenceNames) {
			continue
		}
		found := licensecheck.Scan(text)
		if found.Percent < leastCoverage {
			continue
		}
		for _, match := range found.Match {
			if !slices.Contains(m.Licences, match.ID) {
				m.Licences = append(m.Licences, match.ID)
			}
		}
	}
	return m, nil
}

// Names that files begin with: those with a licence, and those with more that has to be passed on, such as a grant of patents.
var (
	licenceNames = []string{"LICENSE", "LICENCE", "COPYING"}
	otherNames   = []string{"NOTICE", "PATENTS"}
)

// Endings of files that are programs, and of licences of documents, which are in no program.
var otherEndings = []string{".go", ".docs"}

// named reports whether a file is named like one with a licence or a notice.
func named(e fs.DirEntry) bool {
	return e.Type().IsRegular() && !slices.Contains(otherEndings, filepath.Ext(e.Name())) && (startsLike(e.Name(), licenceNames) || startsLike(e.Name(), otherNames))
}

func startsLike(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(strings.ToUpper(name), prefix) })
}

// Check that each module has a licence, and only licences that are allowed.
func Check(modules []Module) error {
	var errs []error
	for _, m := range modules {
		if len(m.Licences) == 0 {
			errs = append(errs, fmt.Errorf("%s %s: no known licence in its folder", m.Path, m.Version))
		}
		for _, id := range m.Licences {
			if !slices.Contains(Allowed, id) {
				errs = append(errs, fmt.Errorf("%s %s: licence %s is not among those that are allowed: %s", m.Path, m.Version, id, strings.Join(Allowed, ", ")))
			}
		}
	}
	return errors.Join(errs...)
}

// Notice has the texts of all modules, each text once, below the modules that it belongs to. The same modules give the same bytes.
func Notice(modules []Module) []byte {
	users := map[string][]string{}
	var texts []string
	for _, m := range modules {
		name := strings.TrimSpace(m.Path + " " + m.Version)
		for _, text := range m.Texts {
			if users[text] == nil {
				texts = append(texts, text)
			}
			if !slices.Contains(users[text], name) {
				users[text] = append(users[text], name)
			}
		}
	}
	var b bytes.Buffer
	b.WriteString("This program contains the Go modules below, under the licences that follow their names.\n")
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(users[text], "\n"), text)
	}
	return b.Bytes()
}
