// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

// loadModel reads all of a model, as a server does that would use it, and returns the digest of its file. Without a file there is
// none.
func loadModel(path string) (digest string, err error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path) //nolint:gosec // Whoever runs the server names its model.
	if err != nil {
		return "", fmt.Errorf("cannot load the model: %w", err)
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("cannot load the model %s: %w", path, err)
	}
	return fmt.Sprintf("sha256:%x", sum.Sum(nil)), nil
}
