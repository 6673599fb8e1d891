// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Repository is the nearest folder, from the working folder upwards, that holds Capstan: a crossplane.yaml and a go.mod.
func Repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the repository: %w", err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if exists(dir, "crossplane.yaml") && exists(dir, "go.mod") {
			return dir, nil
		}
	}
	return "", errors.New("cannot find the repository: run this inside it")
}

// ForRepository is New for a repository, with the cache of the user.
func ForRepository(ctx context.Context, root string) (*Builder, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("cannot find the user's cache folder: %w", err)
	}
	return New(ctx, filepath.Join(root, "hack"), filepath.Join(cache, "capstan"))
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
