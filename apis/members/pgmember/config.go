// SPDX-License-Identifier: Apache-2.0

// Package pgmember is the contract between the function that composes the members of a PostgreSQL Database and the program in their
// image: the file member.json, and where things are in the containers. Like package members it imports the standard library only,
// because that program is in every image of a member.
package pgmember

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
)

// ConfigVersion is the version of Config that this code knows.
const ConfigVersion = 3

// MaskVersion is the version of a file with Source.Mask: a program that ignored it would serve data that is not masked.
const MaskVersion = 2

// SnapshotVersion is the version of a file with Source.Snapshot: a program that ignored it would restore a backup on another member.
const SnapshotVersion = 3

// Config is the file member.json: what the program of a member has to know beyond Patroni's configuration.
//
// Function and image are upgraded apart, so an old program reads a new file, and a new program reads an old file. A new field is
// therefore optional: its zero value means what the file meant before the field existed, and a program that does not know the field
// may ignore it. Only a change that an old program must not ignore raises ConfigVersion, and programs refuse a higher version than
// their own. A field is never given another meaning.
type Config struct {
	// Version of the file: MaskVersion for one with Source.Mask, SnapshotVersion for one with Source.Snapshot. Default: 1.
	Version int `json:"version,omitempty"`
	// Databases that should exist, sorted.
	Databases []string `json:"databases"`
	// Extensions that each database should have. The leader creates those that only a superuser may create.
	Extensions []string `json:"extensions"`
	// Volumes names the members that had a volume before the Database was created. An empty list means that the Database is new; nil that
	// it is unknown, as for members that were created before this field existed.
	Volumes *[]string `json:"volumes,omitempty"`
	// Pooled reports whether there are poolers, which look passwords up.
	Pooled bool `json:"pooled,omitempty"`
	// Slots for consumers of changes. The leader makes them, and drops those that it made and that are listed no more.
	Slots []Slot `json:"slots,omitempty"`
	// Publications that consumers of changes read, which the leader makes and drops likewise.
	Publications []Publication `json:"publications,omitempty"`
	// Replicators are logins that may read changes. The leader gives them REPLICATION and takes it from other logins of Capstan.
	Replicators []string `json:"replicators,omitempty"`
	// Reinitialize is the request to copy a member again from the leader.
	Reinitialize *members.Reinitialize `json:"reinitialize,omitempty"`
	// Fence is the request to keep a member stopped.
	Fence *members.MemberFence `json:"fence,omitempty"`
	// Queries whose results are exported as metrics.
	Queries []members.Query `json:"queries,omitempty"`
	// Backup says how backups are taken. Nil when there never were any.
	Backup *Backup `json:"backup,omitempty"`
	// From is the backup that the Database begins with, if any.
	From *Source `json:"from,omitempty"`
	// Import is the running server that fills the Database, if any.
	Import *members.Import `json:"import,omitempty"`
	// Dumps fill the Database, if any.
	Dumps *Dumps `json:"dumps,omitempty"`
	// Upgrade is the upgrade that this generation begins with, if any.
	Upgrade *Upgrade `json:"upgrade,omitempty"`
	// TakeOver is what this generation waits for before it has clients, while it is filled beside another one by a restore. Nil: nothing.
	TakeOver *TakeOver `json:"takeOver,omitempty"`
}

// TakeOver of the clients of another generation of the Database, whose members stop first.
type TakeOver struct {
	// ID of the restore, and of the fence that stops the other generation.
	ID string `json:"id"`
	// Database is the value of the label of the other generation's pods, and Scope the name that its members find each other by.
	Database string `json:"database"`
	Scope    string `json:"scope"`
}

// ParseConfig understands the content of member.json.
func ParseConfig(raw []byte) (Config, error) {
	var c Config
	if err := json.Unmarshal(raw, &c); err != nil {
		return Config{}, fmt.Errorf("cannot understand the configuration of the member: %w", err)
	}
	if c.Version > ConfigVersion {
		return Config{}, fmt.Errorf("cannot understand the configuration of the member: it has version %d, and this image knows versions up to %d: "+
			"use an image of the function's version", c.Version, ConfigVersion)
	}
	return c, nil
}

// A Slot of logical replication, which survives a failover.
type Slot struct {
	Name     string `json:"name"`
	Database string `json:"database"`
	// Plugin writes the changes.
	Plugin string `json:"plugin"`
}

// A Publication of a database.
type Publication struct {
	Name     string `json:"name"`
	Database string `json:"database"`
	// Tables as schema.table.
	Tables []string `json:"tables,omitempty"`
	// AllTables publishes every table, now and later.
	AllTables bool `json:"allTables,omitempty"`
}

// Backup says how backups are taken.
type Backup struct {
	// Enabled reports whether the write-ahead log is archived and backups are taken. While it is false, segments are dropped.
	Enabled bool `json:"enabled"`
	// Stanza that this Database's backups are kept under.
	Stanza string `json:"stanza"`
	// Path of the repository in the bucket. A volume holds one repository only, and does not use it.
	Path string `json:"path"`
	// Repository is the host that serves the repository when backups go to a volume, unless the mounted Secret opens a bucket.
	// Default: a bucket.
	Repository string `json:"repository,omitempty"`
	// Queue is how many bytes of the write-ahead log may wait for the archive before the oldest are dropped.
	Queue int64 `json:"queue"`
	// UntilLow lets more wait than Queue as long as the volume is not nearly full.
	UntilLow bool `json:"untilLow,omitempty"`
	// Members by the host names of their pods.
	Members []string `json:"members,omitempty"`
	// RetentionDays is how many days backups are kept. 0: RetentionFull counts.
	RetentionDays int `json:"retentionDays,omitempty"`
	// RetentionFull is how many full backups are kept, with all that build on them.
	RetentionFull int `json:"retentionFull,omitempty"`
	// Former are stanzas of generations that are not kept any more. Their backups expire by the same retention, and they are removed once
	// the backups of this stanza reach back far enough.
	Former []string `json:"former,omitempty"`
	// StartEmpty lets the Database begin without data although there are backups under its name.
	StartEmpty bool `json:"startEmpty,omitempty"`
	// RestorePoint is the name to give the current moment, once.
	RestorePoint string `json:"restorePoint,omitempty"`
	// Encrypted reports whether the repository is encrypted, with a key that is mounted.
	Encrypted bool `json:"encrypted,omitempty"`
	// Verify says what a restored backup has to prove. Nil: backups are not verified.
	Verify *Verify `json:"verify,omitempty"`
	// Processes of pgBackRest at a time. Default: 1 that takes a backup, 2 that archive or restore.
	Processes int64 `json:"processes,omitempty"`
}

// Source is the backup that a Database begins with.
type Source struct {
	// Path of the repository in the bucket.
	Path string `json:"path"`
	// Repository is the host that serves the repository when it is in a volume. Default: a bucket.
	Repository string `json:"repository,omitempty"`
	// Either is that host when it is unknown whether the source has a bucket or a volume: the mounted Secret decides.
	Either string `json:"either,omitempty"`
	// Stanza in the repository. Default: the one with the most recent backup.
	Stanza string `json:"stanza,omitempty"`
	// Follow reports that the Database is a standby that replays what the source archives, or was one before it was promoted. Patroni's
	// configuration says which.
	Follow bool `json:"follow,omitempty"`
	// At is the time to restore. Default: the latest there is.
	At *time.Time `json:"at,omitempty"`
	// RestorePoint to restore, by its name, instead of a time.
	RestorePoint string `json:"restorePoint,omitempty"`
	// Encrypted reports whether the repository is encrypted, with a key that is mounted.
	Encrypted bool `json:"encrypted,omitempty"`
	// Processes of pgBackRest at a time. Default: 2.
	Processes int64 `json:"processes,omitempty"`
	// Mask is what is changed in the restored data before any client can connect. Nil: nothing.
	Mask *Mask `json:"mask,omitempty"`
	// Snapshot that the volume of a member was filled from. The archive is replayed from there. Nil: a backup is restored.
	Snapshot *Snapshot `json:"snapshot,omitempty"`
}

// A Snapshot of a volume of another Database.
type Snapshot struct {
	// Identity of that Database, which the volume carries, and Stanza with its archive.
	Identity string `json:"identity"`
	Stanza   string `json:"stanza"`
	// Member whose volume was filled. The others wait, and copy from it.
	Member string `json:"member"`
}

// Mask is what is changed in restored data.
type Mask struct {
	// Statements in the order in which they run.
	Statements []Statement `json:"statements"`
	// Preload names the libraries that the members' server loads at its start.
	Preload []string `json:"preload,omitempty"`
}

// A Statement of SQL, run as the owner of a database.
type Statement struct {
	Database string `json:"database"`
	SQL      string `json:"sql"`
}

// Verify says how backups are verified.
type Verify struct {
	// Assertions about the data.
	Assertions []Assertion `json:"assertions,omitempty"`
	// MaxRestoreSeconds is how long a restore may take. Default: as long as the verification.
	MaxRestoreSeconds int64 `json:"maxRestoreSeconds,omitempty"`
	// Preload names the libraries that the members' server loads at its start.
	Preload []string `json:"preload,omitempty"`
}

// An Assertion is a statement of SQL that has to yield true.
type Assertion struct {
	Database string `json:"database"`
	SQL      string `json:"sql"`
}

// Upgrade is the upgrade that a generation begins with: its data is a copy of an earlier generation's, of an earlier major version.
type Upgrade struct {
	// ID of the upgrade, and of the fence that stops the earlier generation.
	ID string `json:"id"`
	// From is the major version of the earlier generation, Database the value of the label of its pods, Scope its scope in Patroni.
	From     string `json:"from"`
	Database string `json:"database"`
	Scope    string `json:"scope"`
	// Member that does the upgrade. The others wait, and copy from it.
	Member string `json:"member"`
}

// Object is the key of an object that Capstan keeps beside the backups of the repository at a path.
func Object(path, name string) string { return strings.Trim(path, "/") + "/capstan/" + name + ".json" }
