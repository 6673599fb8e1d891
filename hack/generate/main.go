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
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"

	"github.com/capstan-dev/capstan/hack/internal/build"
)

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
	root, err := build.Repository()
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
			return fmt.Errorf("cannot print what was generated: %w", err)
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
		if err := forms(files, root, crd); err != nil {
			return nil, err
		}
		path, data, err := manifest(root, crd)
		if err != nil {
			return nil, err
		}
		files[path] = data
	}
	methods, err := accessors(root, made.crds)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, methods)
	pages, err := reference(root, made.crds)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, pages)
	return files, nil
}

// forms adds the form of a kind that has one, and its hints to the schema, which the definition of the kind is made of.
func forms(files tree, root string, c crd) error {
	if r, err := c.role(); err != nil || r != composite {
		return err
	}
	found, err := hints(root, c)
	if err != nil || len(found) == 0 {
		return err
	}
	kind := c.Spec.Versions[0].Schema.OpenAPIV3Schema
	file, data, err := form(c, kind, found)
	if err != nil {
		return err
	}
	files[file] = data
	if err := portals(files, c, data); err != nil {
		return err
	}
	return show(kind, found)
}
