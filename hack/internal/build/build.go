// SPDX-License-Identifier: Apache-2.0

// Package build compiles the programs of the embedded cluster and of tests from their pinned Go modules, installs the few
// that are Python, and keeps them in a cache, keyed by everything that decides their content.
package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/capstan-dev/capstan/hack/internal/download"
)

// own programs are built from this module's source, a folder each: the one that holds a pod's namespaces open, and the CSI driver.
var own = map[string]string{"pause": "internal/pause", "xfsdriver": "internal/xfsdriver"}

// A Builder finds programs in the cache, or builds them.
type Builder struct {
	// Source is the folder hack of the repository.
	Source string
	// Cache is the folder that holds one folder for each build of a tool.
	Cache string
	// Tools that can be built. Default: the tools of the function Tools, and the programs of our own.
	Tools []Tool

	goVersion string
	// downloads is nil where everything is built.
	downloads *download.Downloader
	// python is the interpreter that virtual environments are made with.
	python string
}

// New returns a Builder that keeps programs in the folder bin of the project's cache folder, or an error when there is no
// Go toolchain.
func New(ctx context.Context, source, cache string) (*Builder, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find the Go toolchain: %w: install Go 1.26 and put it into PATH", err)
	}
	downloads, err := download.FromEnvironment()
	if err != nil {
		return nil, err
	}
	return &Builder{
		Source: source, Cache: filepath.Join(cache, "bin"), goVersion: strings.TrimSpace(string(out)), downloads: downloads,
		python: systemPython,
	}, nil
}

// Dir returns the folder of a tool's programs, whether or not they are built yet.
func (b *Builder) Dir(name string) (string, error) {
	tool, err := b.find(name)
	if err != nil {
		return "", err
	}
	folder, err := b.folder(tool)
	if err != nil {
		return "", err
	}
	return filepath.Join(b.Cache, folder), nil
}

// Version returns the version of the module that a tool is built from, as its go.mod or its requirements pin it.
func (b *Builder) Version(name string) (string, error) {
	tool, err := b.find(name)
	if err != nil {
		return "", err
	}
	if tool.Python {
		return b.pinned(tool)
	}
	path := filepath.Join(b.module(tool), "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the pins of tool %q: %w", name, err)
	}
	mod, err := modfile.Parse(path, data, nil)
	if err != nil {
		return "", fmt.Errorf("cannot parse the pins of tool %q: %w", name, err)
	}
	for _, req := range mod.Require {
		if req.Mod.Path == tool.Module {
			return req.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("cannot find module %q in %s", tool.Module, path)
}

// ModuleDir returns where the Go toolchain keeps the source of a tool's module.
func (b *Builder) ModuleDir(ctx context.Context, name string) (string, error) {
	tool, err := b.find(name)
	if err != nil {
		return "", err
	}
	return b.DependencyDir(ctx, name, tool.Module)
}

// DependencyDir returns where the Go toolchain keeps the source of a module that a tool is built with, in the version that
// the tool pins. It is downloaded when only the cache of programs has outlived it.
func (b *Builder) DependencyDir(ctx context.Context, name, module string) (string, error) {
	tool, err := b.find(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = b.module(tool)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the source of module %q: %w: %s", module, err, out) // the answer has the cause
	}
	var found struct {
		Dir string `json:"Dir"`
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return "", fmt.Errorf("cannot find the source of module %q: %w", module, err)
	}
	return found.Dir, nil
}

// module returns the folder with the go.mod or the requirements that pin a tool.
func (b *Builder) module(tool Tool) string {
	if _, ok := own[tool.Name]; ok {
		return b.Source
	}
	return filepath.Join(b.Source, "tools", cmp.Or(tool.Pins, tool.Name))
}

// folder of a tool below the cache: its name and a hash of all that decides what the compiler makes of it.
func (b *Builder) folder(tool Tool) (string, error) {
	sum := sha256.New()
	parts := slices.Concat([]string{b.goVersion, runtime.GOARCH}, compilerFlags(), linkerFlags(tool), environment(tool), tool.Packages)
	inputs := []string{"go.mod", "go.sum"}
	switch {
	case own[tool.Name] != "":
		files, err := fs.Glob(os.DirFS(b.Source), own[tool.Name]+"/*.go")
		if err != nil {
			return "", fmt.Errorf("cannot find the source of %q: %w", tool.Name, err)
		}
		inputs = append(inputs, files...)
	case tool.Python:
		name, err := b.interpreter()
		if err != nil {
			return "", err
		}
		parts, inputs = []string{name, runtime.GOARCH}, []string{requirements}
	default:
		// A few have a main program of our own.
		mains, err := fs.Glob(os.DirFS(b.module(tool)), filepath.Join(tool.Main, "*.go"))
		if err != nil {
			return "", fmt.Errorf("cannot find the source of %q: %w", tool.Name, err)
		}
		inputs = append(inputs, mains...)
		for _, p := range tool.Pruned {
			inputs = append(inputs, p.Stub)
		}
	}
	_, _ = fmt.Fprintln(sum, strings.Join(parts, "\n"))
	for _, name := range inputs {
		data, err := os.ReadFile(filepath.Join(b.module(tool), name))
		if err != nil {
			return "", fmt.Errorf("cannot read the pins of tool %q: %w", tool.Name, err)
		}
		_, _ = sum.Write(data)
	}
	return tool.Name + "-" + hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// everything is Tools and the programs of our own.
func everything() []Tool {
	all := Tools()
	for _, name := range slices.Sorted(maps.Keys(own)) {
		all = append(all, Tool{Name: name})
	}
	return all
}

func (b *Builder) find(name string) (Tool, error) {
	all := b.Tools
	if all == nil {
		all = everything()
	}
	i := slices.IndexFunc(all, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, fmt.Errorf("cannot find tool %q", name)
	}
	return all[i], nil
}
