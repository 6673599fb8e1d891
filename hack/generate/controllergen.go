// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// generatedCopies is the file of deep copies in each package of types.
const generatedCopies = "zz_generated.deepcopy.go"

// The folders of Go types.
const (
	apis   = "apis"
	inputs = "input"
)

// made is what controller-gen makes of the Go types.
type made struct {
	// copies are the deep copies.
	copies tree
	// crds are the CRDs of all kinds.
	crds []crd
}

// controllerGen runs the pinned controller-gen on a copy of the types, without what was generated before: so a stale
// deep copy cannot stand in its way, and the repository stays as it is.
func controllerGen(ctx context.Context, root string) (made, error) {
	stage, err := os.MkdirTemp("", "capstan-generate-")
	if err != nil {
		return made{}, fmt.Errorf("cannot make a folder to generate in: %w", err)
	}
	defer func() { _ = os.RemoveAll(stage) }()

	if err := copyTypes(root, stage); err != nil {
		return made{}, err
	}
	pin := filepath.Join(root, "hack", "tools", "controller-gen", "go.mod")
	var crds []crd
	for _, top := range []string{apis, inputs} {
		cmd := exec.CommandContext(ctx, "go", "tool", "-modfile="+pin, "controller-gen",
			"object", "crd:allowDangerousTypes=true", "output:crd:dir=crds/"+top, "paths=./"+top+"/...")
		cmd.Dir = stage
		if out, err := cmd.CombinedOutput(); err != nil {
			return made{}, fmt.Errorf("cannot run controller-gen: %w\n%s", err, strings.TrimSpace(string(out)))
		}
		found, err := readCRDs(filepath.Join(stage, "crds", top), top)
		if err != nil {
			return made{}, err
		}
		crds = append(crds, found...)
	}
	copies, err := readCopies(stage)
	if err != nil {
		return made{}, err
	}
	return made{copies: copies, crds: crds}, nil
}

// copyTypes copies the Go module's requirements and types to stage.
func copyTypes(root, stage string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := copyFile(root, stage, name); err != nil {
			return err
		}
	}
	for _, top := range []string{apis, inputs} {
		if err := fs.WalkDir(os.DirFS(root), top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if !ownSource(d) {
				return nil
			}
			return copyFile(root, stage, path)
		}); err != nil {
			return fmt.Errorf("cannot copy the types below %s: %w", top, err)
		}
	}
	return nil
}

func copyFile(root, stage, path string) error {
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return fmt.Errorf("cannot read a source: %w", err)
	}
	to := filepath.Join(stage, path)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("cannot make a folder to generate in: %w", err)
	}
	if err := os.WriteFile(to, data, 0o644); err != nil {
		return fmt.Errorf("cannot copy a source: %w", err)
	}
	return nil
}

func readCopies(stage string) (tree, error) {
	copies := tree{}
	err := fs.WalkDir(os.DirFS(stage), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != generatedCopies {
			return err
		}
		copies[path], err = os.ReadFile(filepath.Join(stage, path))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the deep copies: %w", err)
	}
	return copies, nil
}
