// SPDX-License-Identifier: Apache-2.0

// Package durable writes files that outlast the loss of power.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// Write a file that only its owner reads, as a whole or not at all.
func Write(file string, content []byte) error {
	next := file + ".next"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, file); err != nil {
		return err
	}
	return Sync(filepath.Dir(file))
}

// Sync a folder, so that what was renamed in it stays so.
func Sync(folder string) error {
	d, err := os.Open(filepath.Clean(folder))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
