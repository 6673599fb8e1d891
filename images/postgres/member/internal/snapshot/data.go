// SPDX-License-Identifier: Apache-2.0

// Package snapshot takes snapshots of the volumes of members, and makes the data of a new Database from one.
//
// A volume has data and write-ahead log, and a snapshot shows all of it at one moment: what a server finds that lost power then. So it
// needs no session with the server while it is taken. PostgreSQL replays its own log first, and then what the archive has.
package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// A Volume that may show a snapshot of another Database.
type Volume struct {
	// Folder of the volume, with the Mark that says whose it is, and Data, the data of PostgreSQL.
	Folder, Mark, Data string
	// Aside is the data that the snapshot shows, until it becomes the member's.
	Aside string
}

// Own volume of this member.
var Own = Volume{Folder: pgmember.FolderVolume, Mark: layout.Mark, Data: pgmember.FolderData, Aside: layout.Snapshot}

// SetAside the data of a volume that was filled from a snapshot, so that it is not taken for the member's, and the volume for another
// Database's. Source is the identity of the Database that the snapshot is of; it is sought only if the volume is not the member's own.
// All else on the volume was of the other Database, and is removed. It may be called again after the program ended at any point.
func (v Volume) SetAside(own string, source func() (string, error)) error {
	owner, err := volume.Owner(v.Mark)
	if err != nil || owner == "" || owner == own {
		return err
	}
	of, err := source()
	if err != nil || of == "" || of != owner {
		return err // The check of the mark says so.
	}
	if _, err := os.Lstat(v.Data); err == nil {
		if err := os.RemoveAll(v.Aside); err != nil {
			return fmt.Errorf("cannot remove what is left of a snapshot: %w", err)
		}
		if err := errors.Join(os.Rename(v.Data, v.Aside), durable.Sync(v.Folder)); err != nil {
			return fmt.Errorf("cannot set the data of the snapshot aside: %w", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot look at the data of the snapshot: %w", err)
	}
	entries, err := os.ReadDir(v.Folder)
	if err != nil {
		return fmt.Errorf("cannot read the volume: %w", err)
	}
	for _, e := range entries {
		// What belongs to the file system stays, and the mark goes last.
		if at := filepath.Join(v.Folder, e.Name()); at != v.Aside && at != v.Mark && e.Name() != "lost+found" {
			if err := os.RemoveAll(at); err != nil {
				return fmt.Errorf("cannot remove what the snapshot has beside the data: %w", err)
			}
		}
	}
	if err := errors.Join(os.Remove(v.Mark), durable.Sync(v.Folder)); err != nil {
		return fmt.Errorf("cannot take the volume over: %w", err)
	}
	return nil
}

// Has reports whether there is data of a snapshot.
func (v Volume) Has() bool {
	_, err := os.Stat(filepath.Join(v.Aside, "PG_VERSION"))
	return err == nil
}

// Again keeps data that PostgreSQL could not begin with for another attempt: how far its log was replayed is all that has changed.
func (v Volume) Again(failed string) error {
	if err := os.RemoveAll(v.Aside); err != nil {
		return fmt.Errorf("cannot begin with the snapshot again: %w", err)
	}
	if err := errors.Join(os.Rename(failed, v.Aside), durable.Sync(v.Folder)); err != nil {
		return fmt.Errorf("cannot begin with the snapshot again: %w", err)
	}
	return nil
}

// A Recovery is what is replayed after the log that the snapshot shows.
type Recovery struct {
	// Command fetches a file of the write-ahead log.
	Command string
	// At is the time to end at. Default: the end of the archive.
	At *time.Time
}

// timeFormat of PostgreSQL.
const timeFormat = "2006-01-02 15:04:05.999999-07"

// settings of a recovery, as lines of a configuration.
func (r Recovery) settings() string {
	var b strings.Builder
	line := func(name, value string) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''"))
	}
	line("restore_command", r.Command)
	if r.At != nil {
		line("recovery_target_time", r.At.UTC().Format(timeFormat))
		line("recovery_target_action", "promote")
	}
	return b.String()
}

// Begin with the data of the snapshot: it becomes the member's, and PostgreSQL recovers when it starts.
func (v Volume) Begin(r Recovery) error {
	if !v.Has() {
		return errors.New("the volume has no data of the snapshot that spec.from names: remove the Database and its volume, and make it again")
	}
	// A server that lost power leaves the first two. A standby has a signal and the address of its leader; slots are of members that
	// the new Database does not have.
	for _, name := range []string{"postmaster.pid", "postmaster.opts", "standby.signal"} {
		if err := os.Remove(filepath.Join(v.Aside, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot prepare the data of the snapshot: %w", err)
		}
	}
	if err := emptied(filepath.Join(v.Aside, "pg_replslot")); err != nil {
		return err
	}
	auto := filepath.Join(v.Aside, "postgresql.auto.conf")
	had, err := os.ReadFile(auto)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read the settings of the snapshot: %w", err)
	}
	err = errors.Join(
		durable.Write(auto, []byte(withoutRecovery(string(had))+r.settings())),
		durable.Write(filepath.Join(v.Aside, "recovery.signal"), nil),
		// Patroni finds no data before this.
		os.RemoveAll(v.Data), os.Rename(v.Aside, v.Data), durable.Sync(v.Folder))
	if err != nil {
		return fmt.Errorf("cannot begin with the data of the snapshot: %w", err)
	}
	return nil
}

// withoutRecovery are the lines of a configuration that are about no recovery.
func withoutRecovery(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "=")
		name = strings.TrimSpace(name)
		switch {
		case strings.HasPrefix(name, "recovery_"), strings.HasPrefix(name, "primary_"), name == "restore_command", name == "archive_cleanup_command":
		default:
			b.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	return b.String()
}

// emptied folder, which stays.
func emptied(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot prepare the data of the snapshot: %w", err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(folder, e.Name())); err != nil {
			return fmt.Errorf("cannot prepare the data of the snapshot: %w", err)
		}
	}
	return nil
}
