// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	// systemPython is the interpreter of the system. One that a user has put into PATH may be gone tomorrow, and pods
	// that borrow the machine's /usr cannot see it.
	systemPython = "/usr/bin/python3"
	// PythonVenv is the Debian package without which the interpreter makes no virtual environments.
	PythonVenv = "python3-venv"

	requirements = "requirements.txt"
	// completed is written last into a virtual environment.
	completed = ".complete"
)

// NeedsPython reports whether one of the named tools is made of Python packages.
func NeedsPython(names ...string) bool {
	for _, name := range names {
		if slices.ContainsFunc(Tools(), func(t Tool) bool { return t.Name == name && t.Python }) {
			return true
		}
	}
	return false
}

// install makes the virtual environment of a tool from its pinned packages. Such an environment holds its own path and
// cannot be renamed into place like a build, so it counts only once it has its last file; a half one is made again.
func (b *Builder) install(ctx context.Context, tool Tool, dir string, collected *atomic.Int64) error {
	// Pods that borrow it do not run as root.
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create the virtual environment of %q: %w", tool.Name, err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("cannot create the virtual environment of %q: %w", tool.Name, err)
	}
	defer func() { _ = folder.Close() }()
	// The kernel drops the lock with the process, so nothing is left of an installation that was killed.
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("cannot wait for the virtual environment of %q: %w", tool.Name, err)
	}
	if built(tool, dir) {
		return nil // by another process, while we waited
	}
	if err := empty(folder); err != nil {
		return fmt.Errorf("cannot clear the virtual environment of %q: %w", tool.Name, err)
	}
	pins := filepath.Join(b.module(tool), requirements)
	for _, args := range [][]string{
		{b.python, "-m", "venv", dir},
		// Wheels only: what an sdist builds depends on the machine. A package that is none, and only copies files, is named by its requirements.
		{filepath.Join(dir, "bin", "python3"), "-m", "pip", "install", "--require-hashes", "--only-binary=:all:", "--requirement", pins},
	} {
		if err := run(ctx, args, collected); err != nil {
			return fmt.Errorf("cannot install %q: %w", tool.Name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, completed), nil, 0o600); err != nil {
		return fmt.Errorf("cannot finish the virtual environment of %q: %w", tool.Name, err)
	}
	return nil
}

// run counts the packages that pip names; its errors have what it said last.
func run(ctx context.Context, args []string, collected *atomic.Int64) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `umask 022; exec "$@"`, "sh"}, args...)...)
	// Settings of the user's own environment must not move the packages elsewhere.
	cmd.Env = append(os.Environ(), "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_REQUIRE_VIRTUALENV=1", "PIP_USER=0", "PYTHONPATH=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Collecting ") {
			collected.Add(1)
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}

// empty removes what is in a folder, and not the folder, which holds a lock.
func empty(folder *os.File) error {
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(folder.Name(), name)); err != nil {
			return err
		}
	}
	return nil
}

// built reports whether a folder of the cache is whole.
func built(tool Tool, dir string) bool {
	if tool.Python {
		dir = filepath.Join(dir, completed)
	}
	_, err := os.Stat(dir)
	return err == nil
}

// interpreter returns what decides, beside the pins, what a virtual environment consists of.
func (b *Builder) interpreter() (string, error) {
	target, err := filepath.EvalSymlinks(b.python)
	if err != nil {
		return "", fmt.Errorf("cannot find the Python interpreter: %w: install what Debian calls %s", err, PythonVenv)
	}
	return filepath.Base(target), nil
}

// pinned returns the version of a Python package as its tool's requirements pin it.
func (b *Builder) pinned(tool Tool) (string, error) {
	path := filepath.Join(b.module(tool), requirements)
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the pins of tool %q: %w", tool.Name, err)
	}
	for line := range strings.Lines(string(data)) {
		spec, _, _ := strings.Cut(line, " ")
		name, version, ok := strings.Cut(spec, "==")
		if ok && name == tool.Module {
			return version, nil
		}
	}
	return "", fmt.Errorf("cannot find package %q in %s", tool.Module, path)
}
