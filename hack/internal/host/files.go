// SPDX-License-Identifier: Apache-2.0

// Package host deals with the real machine: what it must offer, what is installed on it, files on its disk.
package host

import (
	"fmt"
	"os"
	"path/filepath"
)

// WriteFiles writes files, given by their path below dir, for the owner's eyes only.
func WriteFiles(dir string, content map[string][]byte) error {
	for name, data := range content {
		path := filepath.Join(dir, name)
		if err := MakeFolder(filepath.Dir(path)); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return fmt.Errorf("cannot write a file: %w", err)
		}
	}
	return nil
}

// MakeFolder makes a folder and its parents.
func MakeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	return nil
}
