// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// logSize is the part of the write-ahead log that one folder of an archive holds, in bytes.
	logSize = 1 << 32
	// archivedAhead is how far behind the last segment of an archive others may be missing, in bytes: several are on their way at
	// a time.
	archivedAhead = 32 * SegmentSize
)

// Requeue lets PostgreSQL archive again what a data folder has of earlier timelines, from shortly before the last segment that the
// archive has. A standby takes for archived what it received, and its leader may have ended before it was. The archive accepts what
// it has already. It returns the number of segments.
func Requeue(data string, timeline int64, archived LSN) (int, error) {
	folder := filepath.Join(data, "pg_wal", "archive_status")
	names, err := os.ReadDir(folder)
	if err != nil {
		return 0, fmt.Errorf("cannot find out what was archived: %w", err)
	}
	n := 0
	for _, name := range names {
		base, done := strings.CutSuffix(name.Name(), ".done")
		at, ok := segment(base)
		if !done || !ok || at+archivedAhead < archived || TimelineOf(base) >= timeline {
			continue
		}
		if _, err := os.Stat(filepath.Join(data, "pg_wal", base)); err != nil {
			continue // recycled
		}
		err := os.Rename(filepath.Join(folder, name.Name()), filepath.Join(folder, base+".ready"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, fmt.Errorf("cannot archive %s again: %w", base, err)
		}
		n++
	}
	return n, nil
}

// TimelineOf a segment by its name; 0 when it is none.
func TimelineOf(name string) int64 {
	t, err := strconv.ParseInt(name[:min(8, len(name))], 16, 64)
	if err != nil {
		return 0
	}
	return t
}

// Hole returns the place of the first segment that an archive lacks between its last backup and its last segment, and that does not
// wait in the data folder for the archive. It reports whether there is one.
func (r Runner) Hole(ctx context.Context, s Stanza, data string) (LSN, bool, error) {
	last, ok := s.Last()
	from, known := segment(last.Archive.Start)
	if !ok || !known || len(s.Archives) == 0 {
		return 0, false, nil
	}
	id := s.Archives[len(s.Archives)-1].ID
	there, err := r.segments(ctx, "archive/"+s.Name+"/"+id, from, s.Archived())
	if err != nil {
		return 0, false, err
	}
	waiting, err := filepath.Glob(filepath.Join(data, "pg_wal", "archive_status", "*.ready"))
	if err != nil {
		return 0, false, fmt.Errorf("cannot find out what waits for the archive: %w", err)
	}
	for _, w := range waiting {
		if at, ok := segment(strings.TrimSuffix(filepath.Base(w), ".ready")); ok {
			there[at] = true
		}
	}
	for at := from; at <= s.Archived(); at += SegmentSize {
		if !there[at] {
			return at, true, nil
		}
	}
	return 0, false, nil
}

// segments of a folder of an archive from one place to another, on whichever timeline.
func (r Runner) segments(ctx context.Context, folder string, from, to LSN) (map[LSN]bool, error) {
	out := map[LSN]bool{}
	logs, err := r.Run(ctx, "repo-ls", folder)
	if err != nil {
		return nil, err
	}
	for log := range strings.Lines(logs) {
		log = strings.TrimSpace(log)
		first, ok := segment(log + "00000000")
		if !ok || first+logSize <= from || first > to {
			continue
		}
		files, err := r.Run(ctx, "repo-ls", folder+"/"+log)
		if err != nil {
			return nil, err
		}
		for file := range strings.Lines(files) {
			name, _, _ := strings.Cut(strings.TrimSpace(file), "-") // the rest is its checksum
			if at, ok := segment(name); ok {
				out[at] = true
			}
		}
	}
	return out, nil
}
