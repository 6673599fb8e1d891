// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/binlog"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// A file of a binary log that is closed.
type file struct {
	binlog.Info

	name string
	size int64
	// written is when its last event was written.
	written time.Time
}

// held are the binary logs that a member has.
type held struct {
	mysql.Logs

	// closed files, and the sets of transactions before the file that is being written, and in it.
	closed       []file
	before, open gtid.Set
	// begun is when that file was begun.
	begun time.Time
}

// all transactions in the files.
func (h held) all() gtid.Set {
	out := h.open
	for _, f := range h.closed {
		out = out.Union(f.Set)
	}
	return out
}

// A reader reads the binary logs of a member, each closed one once.
type reader struct {
	folder string
	log    *slog.Logger

	known map[string]file
}

// read the logs of a server.
func (r *reader) read(ctx context.Context, server Server) (held, error) {
	logs, err := server.Logs(ctx)
	if err != nil {
		return held{}, err
	}
	h := held{Logs: logs}
	if len(logs.Files) == 0 {
		return h, errors.New("the server writes no binary log")
	}
	known := map[string]file{}
	last := len(logs.Files) - 1
	for _, f := range logs.Files[:last] {
		one, err := r.file(f)
		if err != nil {
			return h, err
		}
		known[f.Name] = one
		h.closed = append(h.closed, one)
	}
	r.known = known
	head, err := binlog.Head(filepath.Join(r.folder, logs.Files[last].Name))
	if err != nil {
		return h, err
	}
	h.before, h.open, h.begun = head.Previous, logs.Executed.Minus(head.Previous), head.Began
	return h, nil
}

// file of a closed log. A damaged one counts as if it had nothing: what it had is missing in the archive, and the next backup has it.
func (r *reader) file(f mysql.LogFile) (file, error) {
	path := filepath.Join(r.folder, f.Name)
	stat, err := os.Stat(path)
	if err != nil {
		return file{}, fmt.Errorf("cannot read a binary log: %w", err)
	}
	if known, ok := r.known[f.Name]; ok && known.size == f.Size && known.written.Equal(stat.ModTime()) {
		return known, nil
	}
	info, err := binlog.ReadFile(path)
	if errors.Is(err, binlog.ErrDamaged) {
		r.log.Error("a binary log is damaged, and is not archived", "file", f.Name, "error", err)
		info = binlog.Info{}
	} else if err != nil {
		return file{}, err
	}
	return file{Info: info, name: f.Name, size: f.Size, written: stat.ModTime()}, nil
}

// until a transaction of a closed log, all that was executed, with it.
func (r *reader) until(h held, mark gtid.Set) (gtid.Set, error) {
	for _, f := range h.closed {
		if f.Set.Contains(mark) {
			return binlog.UntilFile(filepath.Join(r.folder, f.name), mark)
		}
	}
	return gtid.Set{}, fmt.Errorf("no binary log has the transaction %s any more", mark)
}
