// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machine

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mount gives the machine a file system view of its own: private, so that nothing it mounts is seen outside, with an
// empty /run and with its data at Data.
func mount(spec Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("cannot mount /proc: %w", err)
	}
	if err := checkPrivate(); err != nil {
		return err
	}
	// The sources may lie below a folder that a later mount hides, so they are opened first and mounted by descriptor.
	mounts := append([]Mount{{Target: "/run"}, {Source: spec.Dir, Target: Data}}, spec.Mounts...)
	sources := make([]*os.File, len(mounts))
	for i, m := range mounts {
		if m.Source == "" {
			continue
		}
		dir, err := os.Open(m.Source)
		if err != nil {
			return fmt.Errorf("cannot open the source of a mount: %w", err)
		}
		defer func() { _ = dir.Close() }()
		sources[i] = dir
	}
	for i, m := range mounts {
		if err := mountOne(m, sources[i]); err != nil {
			return fmt.Errorf("cannot mount %s: %w", m.Target, err)
		}
	}
	// Containers expect their volumes to propagate; it ends at the border of this machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("cannot share mounts with containers: %w", err)
	}
	return nil
}

func mountOne(m Mount, source *os.File) error {
	if source == nil {
		return unix.Mount("tmpfs", m.Target, "tmpfs", 0, "mode=755")
	}
	if err := makeTarget(m.Target, source); err != nil {
		return err
	}
	return unix.Mount(fmt.Sprintf("/proc/self/fd/%d", source.Fd()), m.Target, "", unix.MS_BIND, "")
}

// makeTarget makes the mount point, in memory: all targets that may be missing are below a file system of the machine.
func makeTarget(target string, source *os.File) error {
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.MkdirAll(target, 0o750)
	}
	return nil
}

// checkPrivate does not trust the mount that has just been made private: what stays shared would leak to the machine
// outside.
func checkPrivate() error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("cannot list mounts: %w", err)
	}
	if bytes.Contains(data, []byte(" shared:")) || bytes.Contains(data, []byte(" master:")) {
		return errors.New("cannot continue: mounts would be seen outside this machine")
	}
	return nil
}
