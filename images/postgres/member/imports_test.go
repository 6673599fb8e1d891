// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/build"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
)

// TestImports keeps the program small: the package of the managed resources brings every kind of Kubernetes along, which makes it
// almost twice its size in each image. What members tell is in apis/members.
func TestImports(t *testing.T) {
	for _, root := range []string{".", "../../member", "../../mysql/member"} {
		err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			p, err := build.ImportDir(dir, 0)
			if _, none := err.(*build.NoGoError); none { //nolint:errorlint // ImportDir returns it as it is.
				return nil
			}
			if err != nil {
				return err
			}
			for _, big := range []string{
				"github.com/capstan-dev/capstan/apis/observe/v1alpha1", "github.com/capstan-dev/capstan/apis/v1alpha1",
				"sigs.k8s.io/controller-runtime/pkg/client", "k8s.io/client-go/kubernetes",
			} {
				if slices.Contains(p.Imports, big) {
					t.Errorf("%s imports %s, which makes the program much larger: what members tell is in apis/members", dir, big)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
