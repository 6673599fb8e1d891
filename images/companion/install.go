// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// installCmd copies this program.
type installCmd struct {
	To string `help:"Folder for the copy." required:"" type:"existingdir"`
}

// Run copies the program as a whole or not at all. It may run twice.
func (c *installCmd) Run() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	if err := replace(self, filepath.Join(c.To, "companion")); err != nil {
		return fmt.Errorf("cannot install the companion: %w", err)
	}
	return nil
}

// replace a program by another one, which anybody may run.
func replace(from, to string) (err error) {
	in, err := os.Open(filepath.Clean(from))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.CreateTemp(filepath.Dir(to), ".companion-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(out.Name()))
		}
	}()
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Chmod(0o755), out.Sync(), out.Close()); err != nil { //nolint:gosec // Containers of any user run it.
		return err
	}
	return os.Rename(out.Name(), to)
}
