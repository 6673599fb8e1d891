// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/member/durable"
)

// SegmentSize of the write-ahead log: what initdb makes by default, and nothing changes it.
const SegmentSize = 16 << 20

// Archived is the last result of archiving. It changes only when that does.
type Archived struct {
	// Failing is since when no segment came through, and Message why.
	Failing *time.Time `json:"failing,omitempty"`
	Message string     `json:"message,omitempty"`
	// Dropped is when a segment was dropped last because too many waited. Between the backup before and the next one not every
	// time can be restored.
	Dropped *time.Time `json:"dropped,omitempty"`
}

// ReadArchived from a file. Without one all was well.
func ReadArchived(file string) (Archived, error) {
	var a Archived
	if _, err := durable.ReadJSON(file, &a); err != nil {
		return Archived{}, fmt.Errorf("cannot read the result of archiving: %w", err)
	}
	return a, nil
}

// Write it to a file, as a whole or not at all.
func (a Archived) Write(file string) error {
	if err := durable.WriteJSON(file, a); err != nil {
		return fmt.Errorf("cannot write the result of archiving: %w", err)
	}
	return nil
}

// Backlog is how many bytes of the write-ahead log wait for the archive.
func Backlog(data string) (int64, error) {
	names, err := os.ReadDir(filepath.Join(data, "pg_wal", "archive_status"))
	if err != nil {
		return 0, fmt.Errorf("cannot find out what waits for the archive: %w", err)
	}
	var n int64
	for _, name := range names {
		// Histories and labels of backups are small.
		if base, ok := strings.CutSuffix(name.Name(), ".ready"); ok && len(base) == 24 {
			n++
		}
	}
	return n * SegmentSize, nil
}
