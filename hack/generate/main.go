// SPDX-License-Identifier: Apache-2.0

// Generate makes everything that follows from the Go types below apis/ and
// input/: deep copies, the definitions of composite resources, the CRDs that the
// provider and the function carry in their packages, and the API reference.
//
// With --check it writes nothing and fails when a file of the tree differs from
// what it would write.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// module is the Go module whose types are the source of everything here.
const module = "github.com/capstan-dev/capstan"

func main() {
	check := flag.Bool("check", false, "write nothing, fail when a generated file is not what it should be")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *check)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, check bool) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	files, err := generate(ctx, root)
	if err != nil {
		return err
	}
	changes, err := files.changes(root)
	if err != nil {
		return err
	}
	if check {
		return refuse(changes)
	}
	if err := files.apply(root, changes); err != nil {
		return err
	}
	for _, c := range changes {
		if _, err := fmt.Fprintln(out, c.repaired()); err != nil {
			return fmt.Errorf("cannot tell what was generated: %w", err)
		}
	}
	return nil
}

// generate returns every generated file. It reads the tree and leaves it as it is.
func generate(ctx context.Context, root string) (tree, error) {
	made, err := controllerGen(ctx, root)
	if err != nil {
		return nil, err
	}
	files := made.copies
	for _, crd := range made.crds {
		path, data, err := manifest(root, crd)
		if err != nil {
			return nil, err
		}
		files[path] = data
	}
	pages, err := reference(root, made.crds)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, pages)
	return files, nil
}

// findRoot looks for the root of the repository in the working directory and above.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the working directory: %w", err)
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("cannot look for the root of the repository: %w", err)
		}
		if modfile.ModulePath(data) == module {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("cannot find module %q: run this inside the repository", module)
		}
		dir = parent
	}
}
