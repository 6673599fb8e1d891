// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/apis/members"
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
		return Usage{}, fmt.Errorf("cannot tell how full the volume is: %w", err)
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

// Step is the percentage that is told: in steps of 5, rounded down, and lower again only when it is lower by some.
func Step(before, percent int) int {
	step := percent / 5 * 5
	if step < before && percent > before-3 {
		return before
	}
	return step
}

// Log is what the write-ahead log takes of a volume, in bytes.
type Log struct {
	// Bytes of all segments, and Unarchived those that wait for the archive.
	Bytes, Unarchived int64
}

// MeasureLog measures the write-ahead log of a server whose folder this is. It does not take the server, which may be stopped.
func MeasureLog(data string) (Log, error) {
	var l Log
	segments := filepath.Join(data, "pg_wal")
	entries, err := os.ReadDir(segments)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l, fmt.Errorf("cannot measure the write-ahead log: %w", err)
	}
	sizes := map[string]int64{}
	for _, e := range entries {
		// A segment that is gone by now is recycled.
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sizes[e.Name()] = info.Size()
			l.Bytes += info.Size()
		}
	}
	waiting, err := filepath.Glob(filepath.Join(segments, "archive_status", "*.ready"))
	if err != nil {
		return l, fmt.Errorf("cannot measure the write-ahead log: %w", err)
	}
	for _, name := range waiting {
		l.Unarchived += sizes[strings.TrimSuffix(filepath.Base(name), ".ready")]
	}
	return l, nil
}

const (
	// halfFull is from when on it is told what fills a volume, in percent.
	halfFull = 50
	// logShare of a volume is more than the write-ahead log takes when all is well: its own bound is a tenth, and what slots may
	// hold back a fifth.
	logShare = 35
)

// Fill tells what fills a volume that is half full. A slot holds back as many bytes as held, if it is known.
func Fill(u Usage, l Log, slot string, held int64) (fill, by string) {
	switch {
	case u.Percent < halfFull:
		return "", ""
	case l.Bytes < u.Size/100*logShare:
		return members.FillData, ""
	case l.Unarchived > l.Bytes/2:
		return members.FillArchive, ""
	case slot != "" && held > l.Bytes/2:
		return members.FillSlot, slot
	}
	return members.FillWAL, ""
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
