// SPDX-License-Identifier: Apache-2.0

//go:build integration

package container_test

import (
	"debug/elf"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/capstan-dev/capstan/test/container"
)

// TestLibraries has every library that a program or library of an image needs in the image. One that is missing is noticed only when
// something loads it.
func TestLibraries(t *testing.T) {
	for _, image := range []string{"postgres", "mysql"} {
		t.Run(image, func(t *testing.T) {
			root := container.Root(t, image)
			has := map[string]bool{}
			needs := map[string][]string{} // by path
			err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				has[entry.Name()] = true
				if !entry.Type().IsRegular() {
					return nil
				}
				file, err := os.Open(path)
				if err != nil {
					return err
				}
				defer func() { _ = file.Close() }()
				program, err := elf.NewFile(file)
				if err != nil {
					return nil // It is no program.
				}
				needs[path], err = program.ImportedLibraries()
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(needs) < 100 {
				t.Errorf("%d programs and libraries were looked at, which are too few", len(needs))
			}
			for path, all := range needs {
				for _, library := range all {
					if !has[library] {
						t.Errorf("%s needs %s, which the image lacks", path, library)
					}
				}
			}
		})
	}
}
