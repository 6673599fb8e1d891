// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Classes of how full a volume is.
const (
	DiskOk   = "Ok"
	DiskLow  = "Low"
	DiskFull = "Full"
)

// Usage of the volume at a path, in percent of what an ordinary process may use.
func Usage(path string) (int, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, fmt.Errorf("cannot tell how full the volume is: %w", err)
	}
	used := s.Blocks - s.Bfree
	total := used + s.Bavail // what is kept for root does not help anyone here
	if total == 0 {
		return 0, nil
	}
	// Rounded up, as df does.
	return int((used*100 + total - 1) / total), nil //nolint:gosec // It is at most 100.
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
