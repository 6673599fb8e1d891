// SPDX-License-Identifier: Apache-2.0

// Package durable writes files that outlast the loss of power.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write a file that only its owner reads, as a whole or not at all.
func Write(file string, content []byte) error {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(WriteIn(root, filepath.Base(file), content), root.Close())
}

// Next is what the name ends with that a file has until it is whole.
const Next = ".next"

// WriteIn writes a file below a folder like Write.
func WriteIn(root *os.Root, name string, content []byte) error {
	f, err := root.OpenFile(name+Next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := root.Rename(name+Next, name); err != nil {
		return err
	}
	return Sync(filepath.Join(root.Name(), filepath.Dir(name)))
}

// Sync a folder, so that what was renamed in it stays so.
func Sync(folder string) error {
	d, err := os.Open(filepath.Clean(folder))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ReadJSON reads a file into a value, and reports whether there is such a file.
func ReadJSON(file string, into any) (bool, error) {
	raw, err := os.ReadFile(filepath.Clean(file))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(raw, into)
}

// WriteJSON writes a value to a file as Write does.
func WriteJSON(file string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return Write(file, append(raw, '\n'))
}

// Folders makes folders, unless they exist. Only their owner opens them.
func Folders(all ...string) error {
	for _, dir := range all {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot prepare folders: %w", err)
		}
	}
	return nil
}
