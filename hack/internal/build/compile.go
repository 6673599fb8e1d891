// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// staleAfter is longer than any build takes.
const staleAfter = 2 * time.Hour

// tags apply to every program, so that a package which several programs share is compiled once.
const tags = "no_btrfs,no_devmapper,no_zfs,remove_all_sd,enable_kubernetes_sd,seccomp"

// load finds the packages of a tool and downloads the modules they need, which takes the network and hardly any processor.
func (b *Builder) load(ctx context.Context, tool Tool) error {
	what, err := b.what(ctx, tool)
	if err != nil {
		return err
	}
	_, err = b.run(ctx, tool, nil, append([]string{"list", "-deps"}, what...)...)
	return err
}

// compile compiles the packages of a tool and links nothing. Linking uses one processor, so that the next tool is compiled
// beside it.
func (b *Builder) compile(ctx context.Context, tool Tool, compiled *atomic.Int64) error {
	what, err := b.what(ctx, tool)
	if err != nil {
		return err
	}
	// Only -export makes the command compile; -v makes the compiler name each package.
	_, err = b.run(ctx, tool, compiled, append([]string{"list", "-export", "-v", "-deps"}, what...)...)
	return err
}

// link puts the programs of a tool into its folder. It compiles what compile has not.
func (b *Builder) link(ctx context.Context, tool Tool, dir string) error {
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

	what, err := b.what(ctx, tool)
	if err != nil {
		return err
	}
	args := slices.Concat([]string{"build", "-o", tmp + "/"}, linkerFlags(tool), what)
	if _, err := b.run(ctx, tool, nil, args...); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot keep the build of %q: %w", tool.Name, err)
	}
	return nil
}

// run runs a go command for a tool and counts the packages that the compiler names.
func (b *Builder) run(ctx context.Context, tool Tool, compiled *atomic.Int64, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.module(tool)
	cmd.Env = append(os.Environ(), environment(tool)...)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", fmt.Errorf("cannot build %q: %w", tool.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("cannot build %q: %w", tool.Name, err)
	}
	last := follow(stderr, compiled)
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("cannot build %q: %w\n%s", tool.Name, err, last)
	}
	return stdout.String(), nil
}

// follow counts the packages that the compiler names and returns the last of its other lines, for when it fails.
func follow(r io.Reader, compiled *atomic.Int64) string {
	var last []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		// The path of a package has neither a space nor a colon.
		if !strings.ContainsAny(lines.Text(), " :") {
			if compiled != nil {
				compiled.Add(1)
			}
			continue
		}
		last = append(last, lines.Text())
		if len(last) > 20 {
			last = last[1:]
		}
	}
	return strings.Join(last, "\n")
}

// sweep removes what killed builds have left; younger folders may belong to one that is running.
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

// what is compiled: flags for the compiler, then packages.
func (b *Builder) what(ctx context.Context, tool Tool) ([]string, error) {
	pruned, err := b.pruned(ctx, tool)
	if err != nil {
		return nil, err
	}
	packages, err := b.packages(ctx, tool)
	if err != nil {
		return nil, err
	}
	return slices.Concat(compilerFlags(), pruned, packages), nil
}

// packages of a tool's programs: those it names, or the tool directives of its module.
func (b *Builder) packages(ctx context.Context, tool Tool) ([]string, error) {
	if dir, ok := own[tool.Name]; ok {
		return []string{"./" + dir}, nil
	}
	if len(tool.Packages) > 0 {
		return tool.Packages, nil
	}
	out, err := b.run(ctx, tool, nil, "list", "tool")
	if err != nil {
		return nil, err
	}
	return strings.Fields(out), nil
}

// compilerFlags decide what the compiler makes of a package. They are the same for every tool, because the compiler's cache
// keeps a package once for each set of flags. Programs carry no debugging information, so that it is not computed.
func compilerFlags() []string {
	return []string{"-trimpath", "-pgo=off", "-gcflags=all=-dwarf=false", "-tags=" + tags}
}

func linkerFlags(tool Tool) []string {
	return []string{"-ldflags", strings.TrimSpace("-s -w " + tool.LinkFlags)}
}

func environment(tool Tool) []string {
	env := []string{"CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off"}
	if tool.CGO {
		env[0] = "CGO_ENABLED=1"
	}
	return env
}
