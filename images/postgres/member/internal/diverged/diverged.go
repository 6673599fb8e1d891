// SPDX-License-Identifier: Apache-2.0

// Package diverged keeps the data of a former leader that cannot follow its successor. It may have commits that no other member has:
// after a failover by hand to a member that lacked them, they are nowhere else.
//
// The data is kept as further names of the same files, so that keeping it takes no time. It takes space once the data is copied again.
package diverged

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/volume"
)

const (
	// keptFor is how long the data is kept.
	keptFor = 7 * 24 * time.Hour
	// unchanged is how long the data may still be in use after it was kept. If it is after that, it was not replaced.
	unchanged = 10 * time.Minute
	// roomPercent of the volume has to stay free once the data was copied again.
	roomPercent = 20
	// version is a file that PostgreSQL never writes again.
	version = "PG_VERSION"
	// log is the folder of the write-ahead log, or a link to it.
	log = "pg_wal"
)

// A Folder that keeps the data of a former leader, at most one at a time.
type Folder struct {
	// Path of the folder, and Data the folder that PostgreSQL works in. Both are on one volume.
	Path, Data string
	// Log keeps the write-ahead log of data that has it on a volume of its own, beside it.
	Log string
	// Measure the volume.
	Measure func(string) (volume.Usage, error)
}

// kept is the record of what is kept.
type kept struct {
	At time.Time `json:"at"`
}

func (f Folder) record() string { return filepath.Join(f.Path, "kept.json") }
func (f Folder) copied() string { return filepath.Join(f.Path, "data") }

// Keep the data, and remove what was kept before. The error says why it is not kept, for instance because there is no space for two.
func (f Folder) Keep(now time.Time) error {
	if err := f.Remove(); err != nil {
		return err
	}
	log, err := f.ownLog()
	if err == nil {
		err = f.fits(f.Data, filepath.Dir(f.Data))
	}
	if err == nil && log != "" {
		err = f.fits(log, filepath.Dir(log))
	}
	if err != nil {
		return err
	}
	err = os.Mkdir(f.Path, 0o700)
	if err == nil {
		err = link(f.Data, f.copied())
	}
	if err == nil && log != "" {
		err = f.keepLog(log)
	}
	if err == nil {
		// The record comes last: without it the folder is not whole.
		err = durable.WriteJSON(f.record(), kept{now.UTC().Truncate(time.Second)})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot keep the data: %w", err), f.Remove())
	}
	return nil
}

// ownLog is the folder of the write-ahead log of the data, if it is on a volume of its own, or "".
func (f Folder) ownLog() (string, error) {
	target, err := os.Readlink(filepath.Join(f.Data, log))
	if err != nil {
		return "", nil //nolint:nilerr // It is no link.
	}
	if filepath.Dir(target) != filepath.Dir(f.Log) {
		return "", fmt.Errorf("its write-ahead log is in %s, which is no place of this member", target)
	}
	return target, nil
}

// fits reports an error when a copy of a folder would leave too little of its volume.
func (f Folder) fits(folder, on string) error {
	size, err := volume.SizeOf(folder)
	if err != nil {
		return err
	}
	u, err := f.Measure(on)
	if err != nil {
		return err
	}
	if u.Free-size < u.Size/100*roomPercent {
		return fmt.Errorf("a copy of its %d MiB leaves less than %d %% of the volume free", size>>20, roomPercent)
	}
	return nil
}

// keepLog of the data that is kept, on its own volume, and lead the data there.
func (f Folder) keepLog(own string) error {
	in := filepath.Join(f.copied(), log)
	return errors.Join(link(own, f.Log), os.Remove(in), os.Symlink(f.Log, in))
}

// Remove what is kept.
func (f Folder) Remove() error {
	// The folder goes last: while it is there, the rest is removed another time.
	for _, path := range []string{f.Log, f.Path} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("cannot remove the data that was kept: %w", err)
		}
	}
	return nil
}

// Shares reports whether what is kept is the data that is in use, and not yet replaced.
func (f Folder) Shares() bool {
	a, err := os.Stat(filepath.Join(f.copied(), version))
	if err != nil {
		return false
	}
	b, err := os.Stat(filepath.Join(f.Data, version))
	return err == nil && os.SameFile(a, b)
}

// Since when data is kept; the zero time when there is none. What is kept too long, is no longer another than the data in use, or takes
// space that the volume lacks is removed. Class is how full the volume is.
func (f Folder) Since(now time.Time, class string) (time.Time, error) {
	var k kept
	found, err := durable.ReadJSON(f.record(), &k)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read what is kept: %w", err)
	}
	if !found {
		return time.Time{}, f.removeHalf(now)
	}
	age := now.Sub(k.At)
	if age > keptFor || class != volume.DiskOk || age > unchanged && f.Shares() {
		return time.Time{}, f.Remove()
	}
	return k.At, nil
}

// removeHalf of a folder that has no record although no rewind makes it any more.
func (f Folder) removeHalf(now time.Time) error {
	if info, err := os.Stat(f.Path); err == nil && now.Sub(info.ModTime()) >= unchanged {
		return f.Remove()
	}
	return nil
}

// link gives the files of a folder further names in another one.
func link(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, path[len(from):])
		switch {
		case d.IsDir():
			return os.Mkdir(at, 0o700)
		case d.Type().IsRegular():
			return os.Link(path, at)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, at)
		default:
			return nil // a socket
		}
	})
}
