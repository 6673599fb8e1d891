// SPDX-License-Identifier: Apache-2.0

// Package walvolume keeps the write-ahead log of a member on a volume of its own, if its pod has one.
//
// The data folder has a symbolic link then. Whether there is such a volume depends on the pod alone, so that members of one Database
// may differ while it gets one.
package walvolume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/volume"
)

// roomPercent of the volume has to stay free once the log was moved: the server writes on.
const roomPercent = 10

// A Place is where the write-ahead log of a data folder is.
type Place struct {
	// Data is the folder of PostgreSQL's data, and Volume where the volume of the log is mounted.
	Data, Volume string
	// Measure a volume.
	Measure func(string) (volume.Usage, error)
}

// Own place of this member.
var Own = Place{Data: pgmember.FolderData, Volume: pgmember.FolderWAL, Measure: volume.Measure}

// Log is the folder on the volume.
func (p Place) Log() string { return filepath.Join(p.Volume, "pg_wal") }

// mark says which Database the volume belongs to.
func (p Place) mark() string { return filepath.Join(p.Volume, "capstan.json") }

// In the data folder, the log or the link to it.
func (p Place) inData() string { return filepath.Join(p.Data, "pg_wal") }

// copied is what the log is copied to before it has its name. It is never whole for sure.
func (p Place) copied() string { return p.Log() + durable.Next }

// link gets its place in the data folder when what it leads to is whole. It is beside the data folder, as is the former log until it
// is removed: pg_rewind and base backups know neither.
func (p Place) link() string   { return p.Data + ".wal-link" }
func (p Place) former() string { return p.Data + ".wal-former" }

// Mounted reports whether the pod has a volume for the log.
func (p Place) Mounted() bool {
	info, err := os.Stat(p.Volume)
	return err == nil && info.IsDir()
}

// Prepare the place of the log before the server starts on its data. No server may run, and nothing else may write to the data. The
// error is a *volume.Problem when a person has to decide.
func (p Place) Prepare(ctx context.Context, identity, version string) error {
	linked, err := p.linked()
	if err != nil {
		return err
	}
	switch _, err := os.Stat(p.mark()); {
	case linked && !p.Mounted():
		return &volume.Problem{Reason: pgmember.ReasonWALVolumeLost, Message: "the write-ahead log of the data is on a volume that the pod does not have: " +
			"give the pod its volume back, as spec.walStorage describes it"}
	case !p.Mounted():
		return p.restore()
	case linked && errors.Is(err, fs.ErrNotExist):
		return p.lost("is empty")
	}
	if err := volume.Claim(p.mark(), p.Log(), identity, version); err != nil {
		return err
	}
	switch _, err := os.Stat(filepath.Join(p.Data, "global", "pg_control")); {
	case errors.Is(err, fs.ErrNotExist):
		return p.clear()
	case err != nil:
		return fmt.Errorf("cannot look at the data: %w", err)
	}
	return p.Move(ctx)
}

// lost log: the data cannot be used without it.
func (p Place) lost(how string) error {
	return &volume.Problem{Reason: pgmember.ReasonWALVolumeLost, Message: fmt.Sprintf(
		"the volume of the write-ahead log %s, and the data is of no use without the log: bring that volume back. If another member is the leader, or the "+
			"data is not needed, delete both volume claims of this member and its pod: it is copied again from the leader", how)}
}

// Move the log to its volume, unless it is there. It may be called again after the program ended at any point: the log in the data
// folder counts until a link has taken its place, and the link leads to a whole copy.
func (p Place) Move(ctx context.Context) error {
	if !p.Mounted() {
		return nil
	}
	if err := p.restore(); err != nil {
		return err
	}
	linked, err := p.linked()
	if err != nil {
		return err
	}
	if linked {
		return p.tidy()
	}
	if _, err := os.Lstat(p.inData()); errors.Is(err, fs.ErrNotExist) {
		return nil // The server says what its data lacks.
	}
	for _, step := range p.steps(ctx) {
		if err := step.do(); err != nil {
			return err
		}
	}
	return nil
}

// A step of a move. Each is done as a whole before the next begins, also if power is lost.
type step struct {
	name string
	do   func() error
}

// steps that move the log of a data folder that has it.
func (p Place) steps(ctx context.Context) []step {
	return []step{
		{"clear", p.clear},
		{"fit", p.fits},
		{"copy", func() error { return copyFolder(ctx, p.inData(), p.copied()) }},
		{"name", func() error { return rename(p.copied(), p.Log()) }},
		{"link", func() error {
			if err := os.Symlink(p.Log(), p.link()); err != nil {
				return fmt.Errorf("cannot link the write-ahead log: %w", err)
			}
			return durable.Sync(filepath.Dir(p.link()))
		}},
		{"part", func() error { return rename(p.inData(), p.former()) }},
		{"join", func() error { return rename(p.link(), p.inData()) }},
		{"tidy", p.tidy},
	}
}

// Apart reports whether the log is on a volume of its own.
func (p Place) Apart() (bool, error) {
	linked, err := p.linked()
	return linked && p.Mounted(), err
}

// linked reports whether the log in the data folder is a link.
func (p Place) linked() (bool, error) {
	info, err := os.Lstat(p.inData())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot look at the write-ahead log: %w", err)
	}
	return err == nil && info.Mode()&fs.ModeSymlink != 0, nil
}

// restore the log of a data folder that was parted from it, because the program ended before the link took its place.
func (p Place) restore() error {
	// What was the log of data that is gone is of no use.
	if !missing(p.inData()) || missing(p.former()) || missing(p.Data) {
		return nil
	}
	return rename(p.former(), p.inData())
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// tidy up what a move leaves, once the link is there and leads to a log.
func (p Place) tidy() error {
	to, err := os.Readlink(p.inData())
	if err != nil {
		return fmt.Errorf("cannot look at the write-ahead log: %w", err)
	}
	if to != p.Log() {
		// Data that was put back by hand may have a log that is removed after a while, as the log of diverged data is.
		return &volume.Problem{Reason: pgmember.ReasonWALVolumeLost, Message: fmt.Sprintf(
			"the write-ahead log of the data is in %s, where it is not kept: if the data is the right one, rename that folder to %s, and let %s lead there", to, p.Log(), p.inData())}
	}
	if _, err := os.Stat(p.Log()); err != nil {
		return p.lost("has no log")
	}
	return remove(p.former(), p.link(), p.copied(), p.Log()+failed)
}

// failed is what Patroni appends to the name of a log whose data it could not begin with.
const failed = ".failed"

// clear the volume of logs that belong to no data: of a move that did not end, or of data that is gone.
func (p Place) clear() error {
	return remove(p.copied(), p.Log(), p.Log()+failed, p.former(), p.link())
}

// fits reports an error when the log has no room on the volume.
func (p Place) fits() error {
	size, err := volume.SizeOf(p.inData())
	if err != nil {
		return fmt.Errorf("cannot measure the write-ahead log: %w", err)
	}
	u, err := p.Measure(p.Volume)
	if err != nil {
		return err
	}
	if u.Free-size >= u.Size/100*roomPercent {
		return nil
	}
	return &volume.Problem{Reason: pgmember.ReasonWALVolumeTooSmall, Message: fmt.Sprintf(
		"the write-ahead log has %d MiB, and a volume of %d MiB keeps too little room beside it: raise spec.walStorage. The volume grows, and the member "+
			"continues by itself; its log stays where it is until then", size>>20, u.Size>>20)}
}

// copyFolder with its files to one that does not exist. All of it is on the disk when it returns.
func copyFolder(ctx context.Context, from, to string) error {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		at := filepath.Join(to, path[len(from):])
		switch {
		case d.IsDir():
			return os.Mkdir(at, 0o700)
		case d.Type().IsRegular():
			return copyFile(path, at)
		}
		return fmt.Errorf("%s is neither a file nor a folder", path)
	})
	if err != nil {
		return fmt.Errorf("cannot copy the write-ahead log: %w", err)
	}
	return filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return durable.Sync(path)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(filepath.Clean(from))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(filepath.Clean(to), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// rename for good.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("cannot move the write-ahead log: %w", err)
	}
	return errors.Join(durable.Sync(filepath.Dir(from)), durable.Sync(filepath.Dir(to)))
}

// remove files and folders, if they exist.
func remove(paths ...string) error {
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("cannot remove what is left of a write-ahead log: %w", err)
		}
	}
	return nil
}
