// SPDX-License-Identifier: Apache-2.0

// Package build compiles the programs of the embedded cluster and of tests from their pinned Go modules, installs the few
// that are Python, and keeps them in a cache, keyed by everything that decides their content.
package build

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// own programs are built from this module's source, a folder each: the one that holds a pod's namespaces open, and the CSI driver.
var own = map[string]string{"pause": "internal/pause", "xfsdriver": "internal/xfsdriver"}

// staleAfter is longer than any build takes.
const staleAfter = 2 * time.Hour

// A Builder finds programs in the cache, or builds them.
type Builder struct {
	// Source is the folder hack of the repository.
	Source string
	// Cache is the folder that holds one folder for each build of a tool.
	Cache string

	goVersion string
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
	return &Builder{
		Source: source, Cache: filepath.Join(cache, "bin"), goVersion: strings.TrimSpace(string(out)), python: systemPython,
	}, nil
}

// All builds what the cache lacks and tells p how far it is.
func (b *Builder) All(ctx context.Context, p *progress.Printer) error {
	all := everything()
	names := make([]string, len(all))
	for i, tool := range all {
		names[i] = tool.Name
	}
	return b.Ensure(ctx, p, names...)
}

// Ensure builds those of the named tools that the cache lacks and tells p how far it is.
func (b *Builder) Ensure(ctx context.Context, p *progress.Printer, names ...string) error {
	for i, name := range names {
		tool, err := find(name)
		if err != nil {
			return err
		}
		dir, err := b.Dir(name)
		if err != nil {
			return err
		}
		if built(tool, dir) {
			continue
		}
		verb, done, build := "build", "compiled", b.build
		if tool.Python {
			verb, done, build = "install", "collected", b.install
		}
		var count atomic.Int64
		step := fmt.Sprintf("%s %s, %d of %d", verb, tool.Name, i+1, len(names))
		far := func() string { return fmt.Sprintf("%d packages %s", count.Load(), done) }
		if err := p.Step(step, far, func() error { return build(ctx, tool, dir, &count) }); err != nil {
			return err
		}
	}
	return nil
}

// Dir returns the folder of a tool's programs, whether or not they are built yet.
func (b *Builder) Dir(name string) (string, error) {
	tool, err := find(name)
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
	tool, err := find(name)
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
	tool, err := find(name)
	if err != nil {
		return "", err
	}
	return b.DependencyDir(ctx, name, tool.Module)
}

// DependencyDir returns where the Go toolchain keeps the source of a module that a tool is built with, in the version that
// the tool pins. It is downloaded when only the cache of programs has outlived it.
func (b *Builder) DependencyDir(ctx context.Context, name, module string) (string, error) {
	tool, err := find(name)
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

func (b *Builder) build(ctx context.Context, tool Tool, dir string, compiled *atomic.Int64) error {
	if err := os.MkdirAll(b.Cache, 0o750); err != nil {
		return fmt.Errorf("cannot create the cache of programs: %w", err)
	}
	b.sweep()
	// The final folder appears at once or not at all, so an interrupted build leaves nothing that looks complete.
	tmp, err := os.MkdirTemp(b.Cache, "."+tool.Name+"-")
	if err != nil {
		return fmt.Errorf("cannot create the cache of programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()

	packages, err := b.packages(ctx, tool)
	if err != nil {
		return err
	}
	args := append([]string{"build", "-v"}, flags(tool)...)
	cmd := exec.CommandContext(ctx, "go", append(append(args, "-o", tmp+"/"), packages...)...)
	cmd.Dir = b.module(tool)
	cmd.Env = append(os.Environ(), environment(tool)...)
	out, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("cannot build %q: %w", tool.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot build %q: %w", tool.Name, err)
	}
	said := follow(out, compiled)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("cannot build %q: %w\n%s", tool.Name, err, said)
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot keep the build of %q: %w", tool.Name, err)
	}
	return nil
}

// sweep removes what builds have left that were killed; younger folders may belong to one that is running.
func (b *Builder) sweep() {
	stale, err := filepath.Glob(filepath.Join(b.Cache, ".*"))
	if err != nil {
		return
	}
	for _, dir := range stale {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > staleAfter {
			_ = os.RemoveAll(dir)
		}
	}
}

func (b *Builder) packages(ctx context.Context, tool Tool) ([]string, error) {
	if dir, ok := own[tool.Name]; ok {
		return []string{"./" + dir}, nil
	}
	cmd := exec.CommandContext(ctx, "go", "list", "tool")
	cmd.Dir = b.module(tool)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the programs of %q: %w: %s", tool.Name, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.Fields(string(out)), nil
}

// module returns the folder with the go.mod or the requirements that pin a tool.
func (b *Builder) module(tool Tool) string {
	if _, ok := own[tool.Name]; ok {
		return b.Source
	}
	return filepath.Join(b.Source, "tools", tool.Name)
}

// folder of a tool below the cache: its name and a hash of all that decides what the compiler makes of it.
func (b *Builder) folder(tool Tool) (string, error) {
	sum := sha256.New()
	parts := slices.Concat([]string{b.goVersion, runtime.GOARCH}, flags(tool), environment(tool))
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
		if _, err := os.Stat(filepath.Join(b.module(tool), "main.go")); err == nil {
			inputs = append(inputs, "main.go")
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

func find(name string) (Tool, error) {
	all := everything()
	i := slices.IndexFunc(all, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, fmt.Errorf("cannot find tool %q", name)
	}
	return all[i], nil
}

func flags(tool Tool) []string {
	f := []string{"-trimpath", "-ldflags", "-s -w " + tool.LinkFlags}
	if tool.Tags != "" {
		f = append(f, "-tags="+tool.Tags)
	}
	return f
}

func environment(tool Tool) []string {
	env := []string{"CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"}
	if tool.CGO {
		env[0] = "CGO_ENABLED=1"
	}
	return env
}

// follow counts the packages that the compiler names and returns its last lines, for when it fails.
func follow(r io.Reader, compiled *atomic.Int64) string {
	var last []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		compiled.Add(1)
		last = append(last, lines.Text())
		if len(last) > 20 {
			last = last[1:]
		}
	}
	return strings.Join(last, "\n")
}
