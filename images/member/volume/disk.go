// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Classes of how full a volume is.
const (
	DiskOk   = "Ok"
	DiskLow  = "Low"
	DiskFull = "Full"
)

// Usage of a volume.
type Usage struct {
	// Percent of what an ordinary process may use.
	Percent int
	// Size of the file system, Used of it, and Free for an ordinary process, in bytes.
	Size, Used, Free int64
}

// Measure the volume at a path.
func Measure(path string) (Usage, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Usage{}, fmt.Errorf("cannot find out how full the volume is: %w", err)
	}
	used := s.Blocks - s.Bfree
	total := used + s.Bavail                                                                                  // what is kept for root does not help anyone here
	u := Usage{Size: int64(s.Blocks) * s.Bsize, Used: int64(used) * s.Bsize, Free: int64(s.Bavail) * s.Bsize} //nolint:gosec // sizes of disks
	if total > 0 {
		// Rounded up, as df does.
		u.Percent = int((used*100 + total - 1) / total) //nolint:gosec // It is at most 100.
	}
	return u, nil
}

// Step is the percentage that is reported: in steps of 5, rounded down, and lower again only when it is lower by some.
func Step(before, percent int) int {
	step := percent / 5 * 5
	if step < before && percent > before-3 {
		return before
	}
	return step
}

// Class of a usage: over 85 % is Low and over 95 % Full. The way back is a few percent later, so that a volume at the border does
// not change its class all the time.
func Class(before string, percent int) string {
	low, full := 85, 95
	switch before {
	case DiskFull:
		low, full = 82, 93
	case DiskLow:
		low = 82
	}
	switch {
	case percent > full:
		return DiskFull
	case percent > low:
		return DiskLow
	}
	return DiskOk
}

// A Responder reports whether a volume answers at all.
type Responder struct {
	// Dir is a folder on the volume.
	Dir string

	pending chan struct{}
}

// Answers reports whether a write reaches the volume within a time. One that is full answers. It must not be called at several
// places at a time.
func (r *Responder) Answers(within time.Duration) bool {
	if r.pending == nil {
		done := make(chan struct{})
		r.pending = done
		go func() {
			defer close(done)
			path := filepath.Join(r.Dir, ".capstan-probe")
			f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
			if err != nil {
				return
			}
			_, _ = f.WriteString("probe\n")
			_ = f.Sync()
			_ = f.Close()
			_ = os.Remove(path)
		}()
	}
	select {
	case <-r.pending:
		r.pending = nil
		return true
	case <-time.After(within):
		return false // the write under way continues, and the next call waits for it
	}
}

// SizeOf the files in a folder, in bytes.
func SizeOf(folder string) (int64, error) {
	var size int64
	err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot measure the data: %w", err)
	}
	return size, nil
}
