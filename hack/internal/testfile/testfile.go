// SPDX-License-Identifier: Apache-2.0

// Package testfile writes files for tests.
package testfile

import (
	"os"
	"path/filepath"
	"testing"
)

// Write a file below a root, with the folders that it is in.
func Write(tb testing.TB, root, file, content string) {
	tb.Helper()
	path := filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}
