// SPDX-License-Identifier: Apache-2.0

package pgdata

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/volume"
)

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
	// halfFull is the usage from which on Fill reports what fills a volume, in percent.
	halfFull = 50
	// logShare of a volume is more than the write-ahead log takes when all is well: its own bound is a tenth, and what slots may
	// hold back a fifth.
	logShare = 35
)

// Fill returns what fills a volume that is half full. A slot holds back as many bytes as held, if it is known. On a volume of the log
// alone there is nothing else.
func Fill(u volume.Usage, l Log, alone bool, slot string, held int64) (fill, by string) {
	switch {
	case u.Percent < halfFull:
		return "", ""
	case !alone && l.Bytes < u.Size/100*logShare:
		return members.FillData, ""
	case l.Unarchived > l.Bytes/2:
		return members.FillArchive, ""
	case slot != "" && held > l.Bytes/2:
		return members.FillSlot, slot
	}
	return members.FillWAL, ""
}
