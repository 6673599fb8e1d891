// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/report"
)

// A note of how archiving is, which outlasts the program.
type note struct {
	// Failing is since when nothing came through, and Message why.
	Failing *time.Time `json:"failing,omitempty"`
	Message string     `json:"message,omitempty"`
	// Dropped is when it was noted last that a transaction will never be in the archive. Between the backup before and the next one not every
	// moment can be restored.
	Dropped *time.Time `json:"dropped,omitempty"`
}

// errNote: the file is there, and is no note.
var errNote = errors.New("it is damaged")

// readNote from a file. Without one all was well. The error is errNote when the file is damaged.
func readNote(file string) (note, error) {
	var n note
	_, err := durable.ReadJSON(file, &n)
	var unreadable *fs.PathError
	if err != nil && !errors.As(err, &unreadable) {
		err = fmt.Errorf("%w: %w", errNote, err)
	}
	if err != nil {
		return note{}, fmt.Errorf("cannot read how archiving is: %w", err)
	}
	return n, nil
}

// write the note to a file, as a whole or not at all.
func (n note) write(file string) error {
	if err := durable.WriteJSON(file, n); err != nil {
		return fmt.Errorf("cannot write how archiving is: %w", err)
	}
	return nil
}

// fails since now, if it did not fail before, or does not.
func (n note) fails(err error) note {
	if err == nil {
		n.Failing, n.Message = nil, ""
		return n
	}
	if n.Failing == nil {
		n.Failing = now()
	}
	n.Message = report.Lasting(err)
	return n
}

// drops a transaction: at most once a minute.
func (n note) drops() note {
	if n.Dropped == nil || time.Since(*n.Dropped) >= time.Minute {
		n.Dropped = now()
	}
	return n
}

func now() *time.Time { return new(time.Now().UTC().Truncate(time.Second)) }

// stamp of a time, or nothing.
func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
