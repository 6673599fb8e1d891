// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// leastSize is what mkfs.xfs asks for at least, in bytes.
	leastSize = 300 << 20
	// block is what sizes are rounded up to, in bytes: a loop device ends at a whole sector, XFS at a whole block.
	block = 4 << 10
)

// disks are the files of a node's volumes. A file takes as much room as was written into it.
type disks struct{ folder string }

// path of the file of a volume. Volumes have names that the provisioner chose, and nothing else is a name.
func (d disks) path(volume string) (string, error) {
	if volume == "" || filepath.Base(volume) != volume || volume[0] == '.' {
		return "", status.Errorf(codes.InvalidArgument, "cannot find volume %q: that is no name of a volume", volume)
	}
	return filepath.Join(d.folder, volume+".xfs"), nil
}

// size that a volume gets which is requested with this many bytes at least and, unless that is 0, at most.
func size(least, most int64) (int64, error) {
	n := (max(least, leastSize) + block - 1) / block * block
	if most > 0 && n > most {
		return 0, status.Errorf(codes.OutOfRange, "cannot make a volume of at most %d bytes: it takes %d", most, n)
	}
	return n, nil
}

// make a volume, unless it is there. It is an error when it is there with another size.
func (d disks) make(volume string, bytes int64) error {
	path, err := d.path(volume)
	if err != nil {
		return err
	}
	switch has, err := d.size(volume); {
	case err == nil && has != bytes:
		return status.Errorf(codes.AlreadyExists, "volume %q is there with %d bytes, not %d", volume, has, bytes)
	case err == nil:
		return nil
	case status.Code(err) != codes.NotFound:
		return err
	}
	// It appears with its size or not at all.
	tmp := path + ".new"
	if err := os.WriteFile(tmp, nil, 0o600); err != nil {
		return status.Errorf(codes.Internal, "cannot make volume %q: %v", volume, err)
	}
	if err := errors.Join(os.Truncate(tmp, bytes), os.Rename(tmp, path)); err != nil {
		return status.Errorf(codes.Internal, "cannot make volume %q: %v", volume, err)
	}
	return nil
}

// size of a volume in bytes.
func (d disks) size(volume string) (int64, error) {
	path, err := d.path(volume)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, status.Errorf(codes.NotFound, "volume %q is not there", volume)
	case err != nil:
		return 0, status.Errorf(codes.Internal, "cannot see volume %q: %v", volume, err)
	}
	return info.Size(), nil
}

// grow the file of a volume, and the loop device that it is attached to, if there is one, which is returned. A file that is larger
// stays as it is.
func (d disks) grow(volume string, bytes int64) (device string, err error) {
	path, err := d.path(volume)
	if err != nil {
		return "", err
	}
	has, err := d.size(volume)
	if err != nil {
		return "", err
	}
	if bytes > has {
		if err := os.Truncate(path, bytes); err != nil {
			return "", status.Errorf(codes.Internal, "cannot grow volume %q: %v", volume, err)
		}
	}
	device, err = d.device(volume)
	if err != nil || device == "" {
		return "", err
	}
	if out, err := exec.Command("losetup", "--set-capacity", device).CombinedOutput(); err != nil {
		return "", status.Errorf(codes.Internal, "cannot grow %s, which is volume %q: %v: %s", device, volume, err, out)
	}
	return device, nil
}

// remove a volume. One that is gone is no error, one that is in use is.
func (d disks) remove(volume string) error {
	path, err := d.path(volume)
	if err != nil {
		return err
	}
	device, err := d.device(volume)
	switch {
	case status.Code(err) == codes.NotFound:
		return nil
	case err != nil:
		return err
	case device != "":
		return status.Errorf(codes.FailedPrecondition, "cannot remove volume %q while it is attached to %s", volume, device)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return status.Errorf(codes.Internal, "cannot remove volume %q: %v", volume, err)
	}
	return nil
}

// device that a volume is attached to, or "". The kernel compares files and not their names, which differ between machines.
func (d disks) device(volume string) (string, error) {
	path, err := d.path(volume)
	if err != nil {
		return "", err
	}
	if _, err := d.size(volume); err != nil {
		return "", err
	}
	out, err := exec.Command("losetup", "--associated", path, "--output=NAME", "--noheadings").Output()
	if err != nil {
		return "", status.Errorf(codes.Internal, "cannot find the device of volume %q: %v", volume, explained(err))
	}
	found := strings.Fields(string(out))
	if len(found) > 1 {
		return "", status.Errorf(codes.Internal, "volume %q is attached to %s: it must be one device", volume, strings.Join(found, " and "))
	}
	return strings.Join(found, ""), nil
}

// explained error of a command, with what it said.
func explained(err error) error {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(e.Stderr)))
	}
	return err
}
