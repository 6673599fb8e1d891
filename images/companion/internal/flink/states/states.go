// SPDX-License-Identifier: Apache-2.0

// Package states finds the state that a stream continues from. Flink writes the file _metadata of a checkpoint or savepoint last, so that
// one with this file is complete. Flink numbers all of them, and the number grows from one start to the next, in the next revision, too.
package states

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/flink"
)

const (
	// magic begins each file _metadata.
	magic = 0x4960672d
	// header is the length of magic, version and number.
	header = 16
)

// A Folder is the state folder of a stream on a volume.
type Folder struct {
	Dir string
}

// Complete states of all revisions but the ignored ones, oldest first. Their numbers decide: a revision begins with the newest state before
// it, and Flink counts on from there. Revisions begin at 1 again when a Pipeline is made again with a claim that outlived it.
func (f Folder) Complete(ignored []int) ([]flink.Saved, error) {
	var all []flink.Saved
	for _, kind := range []struct {
		pattern   string
		savepoint bool
	}{
		{pattern: filepath.Join(flink.CheckpointsDir, "r*", "*", "chk-*", flink.MetadataFile)},
		{pattern: filepath.Join(flink.SavepointsDir, "r*", "*", flink.MetadataFile), savepoint: true},
	} {
		files, err := filepath.Glob(filepath.Join(escape(f.Dir), kind.pattern))
		if err != nil {
			return nil, fmt.Errorf("cannot look for state in %q: %w", f.Dir, err)
		}
		for _, file := range files {
			relative, err := filepath.Rel(f.Dir, file)
			if err != nil {
				return nil, fmt.Errorf("cannot look for state in %q: %w", f.Dir, err)
			}
			revision, ok := revisionOf(strings.Split(relative, string(filepath.Separator))[1])
			if !ok || slices.Contains(ignored, revision) {
				continue
			}
			saved, complete, err := read(file)
			if err != nil {
				return nil, err
			}
			if complete {
				saved.Revision, saved.Savepoint = revision, kind.savepoint
				all = append(all, saved)
			}
		}
	}
	slices.SortFunc(all, func(a, b flink.Saved) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Revision, b.Revision), a.At.Compare(b.At), cmp.Compare(a.Path, b.Path))
	})
	return all, nil
}

// read the header of a file _metadata. One that is too short or begins with something else is not complete; neither is one that has been
// deleted since it was listed. Any other error is reported: to continue without the newest state would lose what it has.
func read(file string) (flink.Saved, bool, error) {
	in, err := os.Open(filepath.Clean(file))
	if errors.Is(err, fs.ErrNotExist) {
		return flink.Saved{}, false, nil
	}
	if err != nil {
		return flink.Saved{}, false, fmt.Errorf("cannot read state: %w", err)
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return flink.Saved{}, false, fmt.Errorf("cannot read state: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() <= header {
		return flink.Saved{}, false, nil
	}
	raw := make([]byte, header)
	if _, err := in.ReadAt(raw, 0); err != nil {
		return flink.Saved{}, false, fmt.Errorf("cannot read state: %w", err)
	}
	if binary.BigEndian.Uint32(raw) != magic {
		return flink.Saved{}, false, nil
	}
	return flink.Saved{
		Path: filepath.Dir(file), ID: int64(binary.BigEndian.Uint64(raw[8:])), At: info.ModTime().UTC(), //nolint:gosec // Java has no unsigned numbers.
	}, true, nil
}

// Header is the beginning of a file _metadata with a number.
func Header(version uint32, id int64) []byte {
	raw := binary.BigEndian.AppendUint32(nil, magic)
	raw = binary.BigEndian.AppendUint32(raw, version)
	return binary.BigEndian.AppendUint64(raw, uint64(id)) //nolint:gosec // Java has no unsigned numbers.
}

func revisionOf(dir string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(dir, "r"))
	return n, err == nil && n > 0 && flink.RevisionDir(n) == dir
}

// escape what is special in a pattern.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// Record that companions keep in the folder, and whether there is one. Without one it is empty.
func (f Folder) Record() (r flink.Record, found bool, err error) {
	raw, err := os.ReadFile(filepath.Join(f.Dir, flink.RecordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return flink.Record{Version: 1}, false, nil
	}
	if err != nil {
		return flink.Record{}, false, fmt.Errorf("cannot read the record of the stream: %w", err)
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return flink.Record{}, false, fmt.Errorf("cannot understand %s in the state folder: %w", flink.RecordFile, err)
	}
	return r, true, nil
}

// Keep a record, whole or not at all.
func (f Folder) Keep(r flink.Record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot keep the record of the stream: %w", err)
	}
	out, err := os.CreateTemp(f.Dir, flink.RecordFile+".*")
	if err != nil {
		return fmt.Errorf("cannot keep the record of the stream: %w", err)
	}
	defer func() { _ = os.Remove(out.Name()) }()
	_, err = out.Write(raw)
	err = errors.Join(err, out.Sync(), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), filepath.Join(f.Dir, flink.RecordFile))
	}
	if err != nil {
		return fmt.Errorf("cannot keep the record of the stream: %w", err)
	}
	return nil
}

// Surplus are the savepoints that nothing needs any more: all but the newest so many, and those that are in use. Only savepoints in folders
// of revisions are among them, which companions asked for; no checkpoint is.
func Surplus(all []flink.Saved, keep int, inUse ...*flink.Saved) []flink.Saved {
	var surplus []flink.Saved
	for _, s := range slices.Backward(all) {
		if !s.Savepoint || slices.ContainsFunc(inUse, func(u *flink.Saved) bool { return u != nil && u.Path == s.Path }) {
			continue
		}
		if keep > 0 {
			keep--
			continue
		}
		surplus = append(surplus, s)
	}
	return surplus
}

// Remove a savepoint. Its file _metadata goes first, so that no half of it counts.
func (f Folder) Remove(s flink.Saved) error {
	relative, err := filepath.Rel(filepath.Join(f.Dir, flink.SavepointsDir), s.Path)
	if err != nil || !s.Savepoint || !filepath.IsLocal(relative) || strings.Count(relative, string(filepath.Separator)) != 1 {
		return fmt.Errorf("cannot remove %q, which is no savepoint of this stream", s.Path)
	}
	if err := errors.Join(os.Remove(filepath.Join(s.Path, flink.MetadataFile)), os.RemoveAll(s.Path)); err != nil {
		return fmt.Errorf("cannot remove an old savepoint: %w", err)
	}
	return nil
}
