// SPDX-License-Identifier: Apache-2.0

package memberimage

import (
	"context"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// Programs returns a folder with scripts that run programs of the image on this machine, which may have older libraries: by the loader, with
// the libraries and the files of the root file system in the cache.
func (b *Builder) Programs(ctx context.Context, image Image) (string, error) {
	root, err := b.Rootfs(ctx, image, "linux/"+runtime.GOARCH)
	if err != nil {
		return "", err
	}
	dir := root + "-programs"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot create a folder for programs of %s: %w", image.Name, err)
	}
	for _, p := range image.programs {
		script, err := p.script(root)
		if err != nil {
			return "", fmt.Errorf("cannot run %s without a container: %w", p.path, err)
		}
		if err := replace(filepath.Join(dir, path.Base(p.path)), script); err != nil {
			return "", fmt.Errorf("cannot write a script for %s: %w", p.path, err)
		}
	}
	return dir, nil
}

// script runs the program as the process that runs the script. What it adds comes last: MySQL wants some options to be the first.
func (p program) script(root string) (string, error) {
	loader, err := interpreter(filepath.Join(root, p.path))
	if err != nil {
		return "", err
	}
	libraries, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu"))
	if err != nil {
		return "", err
	}
	var script strings.Builder
	fmt.Fprintf(&script, "#!/bin/sh\nexec '%s' --library-path '%s' '%s' \"$@\"",
		filepath.Join(root, loader), strings.Join(libraries, ":"), filepath.Join(root, p.path))
	for _, arg := range p.args {
		fmt.Fprintf(&script, " '"+arg+"'", root)
	}
	script.WriteString("\n")
	return script.String(), nil
}

// interpreter is the loader that a program names.
func interpreter(file string) (string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_INTERP {
			name, err := io.ReadAll(segment.Open())
			return strings.TrimRight(string(name), "\x00"), err
		}
	}
	return "", fmt.Errorf("%s names no loader", file)
}

// replace writes a script that another test may be starting now.
func replace(file, script string) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".script-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	if _, err := tmp.WriteString(script); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := os.Chmod(tmp.Name(), 0o755); err != nil { //nolint:gosec // Tests run it as other users.
		return err
	}
	return os.Rename(tmp.Name(), file)
}
