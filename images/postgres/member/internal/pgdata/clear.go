// SPDX-License-Identifier: Apache-2.0

package pgdata

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Clear a data folder that has no control file, and so is no data of PostgreSQL: what is left of a copy that did not end. With
// one nothing is removed, and the error says so.
func Clear(data string) error {
	entries, err := os.ReadDir(data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the data folder: %w", err)
	}
	if _, err := os.Lstat(filepath.Join(data, "global", "pg_control")); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot clear %s: it is not known to be without data", data)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(data, e.Name())); err != nil {
			return fmt.Errorf("cannot clear what is left of a copy: %w", err)
		}
	}
	return nil
}
