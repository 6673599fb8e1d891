// SPDX-License-Identifier: Apache-2.0

// Command mutate breaks rules of the planners one by one, and runs the tests that should notice.
//
//	go -C hack run ./mutate               every mutation
//	go -C hack run ./mutate baked wake    the mutations of these names
//
// mutations.yaml lists them. A mutation replaces a text of a file in the build only (go test -overlay): no file changes. A mutation
// that no test notices shows that a test is missing.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/hack/internal/build"
)

// list of the mutations, below the root of the repository.
const list = "hack/mutate/mutations.yaml"

// A mutation of one file.
type mutation struct {
	Name string `json:"name"`
	// File below the root of the repository.
	File string `json:"file"`
	// Old text, which the file has once, and the New one.
	Old string `json:"old"`
	New string `json:"new"`
	// Tests are packages. A test of one of them has to fail. The fastest comes first.
	Tests []string `json:"tests"`
}

type cli struct {
	Names []string `arg:"" help:"Mutations to try. Default: all." optional:""`
}

func main() {
	var c cli
	k := kong.Parse(&c, kong.Name("mutate"), kong.Description("Break rules one by one, and run the tests that should notice."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	k.FatalIfErrorf(c.run(ctx, os.Stdout))
}

func (c cli) run(ctx context.Context, out io.Writer) error {
	root, err := build.Repository()
	if err != nil {
		return fmt.Errorf("cannot find the repository: %w", err)
	}
	all, err := read(root)
	if err != nil {
		return err
	}
	for _, name := range c.Names {
		if !slices.ContainsFunc(all, func(m mutation) bool { return m.Name == name }) {
			return fmt.Errorf("%s has no mutation %q", list, name)
		}
	}
	var survived []string
	for _, m := range all {
		if len(c.Names) > 0 && !slices.Contains(c.Names, m.Name) {
			continue
		}
		began := time.Now()
		by, err := m.noticedBy(ctx, root)
		if err != nil {
			return err
		}
		if by == "" {
			survived = append(survived, m.Name)
			by = "NO TEST"
		}
		if _, err := fmt.Fprintf(out, "%-40s noticed by %s (%s)\n", m.Name, by, time.Since(began).Round(time.Second)); err != nil {
			return fmt.Errorf("cannot print: %w", err)
		}
	}
	if len(survived) > 0 {
		return fmt.Errorf("no test notices: %s", strings.Join(survived, ", "))
	}
	return nil
}

func read(root string) ([]mutation, error) {
	raw, err := os.ReadFile(filepath.Join(root, list))
	if err != nil {
		return nil, fmt.Errorf("cannot read the mutations: %w", err)
	}
	var all []mutation
	if err := yaml.UnmarshalStrict(raw, &all); err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", list, err)
	}
	return all, nil
}

// mutated text of the file.
func (m mutation) mutated(root string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, fmt.Errorf("cannot read the file of mutation %q: %w", m.Name, err)
	}
	if n := bytes.Count(raw, []byte(m.Old)); n != 1 {
		return nil, fmt.Errorf("mutation %q: %s has its old text %d times, must be once: adapt %s", m.Name, m.File, n, list)
	}
	return bytes.Replace(raw, []byte(m.Old), []byte(m.New), 1), nil
}

// noticedBy is the first test that fails with the mutation, or empty.
func (m mutation) noticedBy(ctx context.Context, root string) (string, error) {
	text, err := m.mutated(root)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return "", fmt.Errorf("cannot make a folder: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // A folder for temporary files.
	file, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	raw, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.File): file}})
	if err == nil {
		err = errors.Join(os.WriteFile(file, text, 0o600), os.WriteFile(overlay, raw, 0o600))
	}
	if err != nil {
		return "", fmt.Errorf("cannot write mutation %q: %w", m.Name, err)
	}
	for _, p := range m.Tests {
		failed, err := test(ctx, root, overlay, p)
		if err != nil {
			return "", fmt.Errorf("mutation %q: %w", m.Name, err)
		}
		if failed != "" {
			return failed, nil
		}
	}
	return "", nil
}

// test a package with an overlay. It returns the first test that fails, or empty.
func test(ctx context.Context, root, overlay, pkg string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-failfast", "-timeout=1h", "-overlay="+overlay, pkg)
	cmd.Dir = root
	raw, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case !errors.As(err, &failed) || ctx.Err() != nil:
		return "", fmt.Errorf("cannot run the tests of %s: %w", pkg, err)
	}
	for line := range strings.Lines(string(raw)) {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return pkg + " " + name, nil
		}
	}
	return "", fmt.Errorf("the tests of %s do not run: %w\n%s", pkg, err, raw)
}
