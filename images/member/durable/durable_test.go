// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "state.json")
	for _, content := range []string{"first", "second"} {
		if err := Write(file, []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(content, string(got)); diff != "" {
			t.Errorf("Write(...): -want, +got:\n%s", diff)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %d entries (%v), want the file only", len(entries), err)
	}
	if err := Write(filepath.Join(dir, "none", "state.json"), nil); err == nil {
		t.Error("Write(...) into a folder that does not exist: want an error")
	}
}
