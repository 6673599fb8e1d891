// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Pruned package is replaced by a file of our own, because what it imports is most of what there would be to compile, and the
// cluster never calls it.
type Pruned struct {
	// Module and Package, its path below the module.
	Module, Package string
	// Stub is the file, in the folder that pins the tool, which takes the place of the package's files.
	Stub string
}

// pruned returns the flags by which the go command sees a tool without its pruned packages: none when it has none. The Go toolchain
// refuses overlays in its module cache, so that the module is copied and replaced.
func (b *Builder) pruned(ctx context.Context, tool Tool) ([]string, error) {
	if len(tool.Pruned) == 0 {
		return nil, nil
	}
	folder, err := b.folder(tool)
	if err != nil {
		return nil, err
	}
	work := filepath.Join(b.Cache, ".source-"+folder)
	modfile := filepath.Join(work, "go.mod")
	if _, err := os.Stat(modfile); err == nil {
		return []string{"-modfile=" + modfile}, nil
	}
	if err := os.MkdirAll(b.Cache, 0o750); err != nil {
		return nil, fmt.Errorf("cannot create the cache of programs: %w", err)
	}
	tmp, err := os.MkdirTemp(b.Cache, ".pruning-")
	if err != nil {
		return nil, fmt.Errorf("cannot create the cache of programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(b.module(tool), name))
		if err != nil {
			return nil, fmt.Errorf("cannot read the pins of tool %q: %w", tool.Name, err)
		}
		if err := os.WriteFile(filepath.Join(tmp, name), data, 0o600); err != nil {
			return nil, fmt.Errorf("cannot prune tool %q: %w", tool.Name, err)
		}
	}
	for _, p := range tool.Pruned {
		if err := b.prune(ctx, tool, p, tmp, work); err != nil {
			return nil, fmt.Errorf("cannot prune package %q of tool %q: %w", p.Package, tool.Name, err)
		}
	}
	// Another process may have been quicker, with the same content.
	if err := os.Rename(tmp, work); err != nil {
		if _, missing := os.Stat(modfile); missing != nil {
			return nil, fmt.Errorf("cannot prune tool %q: %w", tool.Name, err)
		}
	}
	return []string{"-modfile=" + modfile}, nil
}

// prune copies a module to a folder of tmp, which will be renamed to work, without the files of the package but with the stub.
func (b *Builder) prune(ctx context.Context, tool Tool, p Pruned, tmp, work string) error {
	source, err := b.DependencyDir(ctx, tool.Name, p.Module)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(p.Module, "/", "-")
	target := filepath.Join(tmp, name)
	if err := os.CopyFS(target, os.DirFS(source)); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(target, p.Package, "*.go"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("cannot find its files in module %q", p.Module)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	stub, err := os.ReadFile(filepath.Join(b.module(tool), p.Stub))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(target, p.Package, filepath.Base(p.Stub)), stub, 0o600); err != nil {
		return err
	}
	edit := exec.CommandContext(ctx, "go", "mod", "edit", "-replace="+p.Module+"="+filepath.Join(work, name), filepath.Join(tmp, "go.mod"))
	if out, err := edit.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
