// SPDX-License-Identifier: Apache-2.0

// Package mysqlmember is the contract between the function that composes the members of a MySQL Database and the program in their
// image: the file member.json, what members follow at run time, and where things are in the containers. Like package members it
// imports the standard library only, because that program is in every image of a member.
package mysqlmember

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
)

// ConfigVersion is the version of Config and Dynamic that this code knows.
const ConfigVersion = 1

// Config is the file member.json: what the program of a member has to know beyond the configuration of its server.
//
// Function and image are upgraded apart, so an old program reads a new file, and a new program reads an old file. A new field is
// therefore optional: its zero value means what the file meant before the field existed, and a program that does not know the field
// may ignore it. Only a change that an old program must not ignore raises ConfigVersion, and programs refuse a higher version than
// their own. A field is never given another meaning.
type Config struct {
	// Version of the file. Default: 1.
	Version int `json:"version,omitempty"`
	// Generation of the Database that the member belongs to, from 1. Server ids and the name of the group follow from it.
	Generation int `json:"generation"`
	// Domain ends the host names of members: the host of pod orders-db-a-0 is orders-db-a-0.<domain>.
	Domain string `json:"domain"`
	// Volumes names the members that had a volume before the Database was created. An empty list means that the Database is new; nil that
	// it is unknown.
	Volumes *[]string `json:"volumes,omitempty"`
	// Reinitialize is the request to copy a member again from its group.
	Reinitialize *members.Reinitialize `json:"reinitialize,omitempty"`
	// Fence is the request to keep a member stopped.
	Fence *members.MemberFence `json:"fence,omitempty"`
	// Begun reports that members have had data, so that none begins without. It is recorded beside what members record themselves, which
	// can be lost.
	Begun bool `json:"begun,omitempty"`
	// Backup says how backups are taken. Nil when there never were any.
	Backup *Backup `json:"backup,omitempty"`
	// From is the backup that the generation begins with, if any.
	From *Source `json:"from,omitempty"`
	// Replicators are logins that may read the binary logs. The leader gives them the rights and takes them from other logins of Capstan, and
	// each member ends what those read.
	Replicators []string `json:"replicators,omitempty"`
	// Import is the running server that fills the Database. It stays in the file after the cut-over: what became of it is in the data itself.
	Import *members.Import `json:"import,omitempty"`
}

// ParseConfig understands the content of member.json.
func ParseConfig(raw []byte) (Config, error) {
	var c Config
	if err := json.Unmarshal(raw, &c); err != nil {
		return Config{}, fmt.Errorf("cannot understand the configuration of the member: %w", err)
	}
	if err := known(c.Version); err != nil {
		return Config{}, fmt.Errorf("cannot understand the configuration of the member: %w", err)
	}
	return c, nil
}

// Dynamic is what all members follow at run time. It is kept as JSON in the annotation config of the ConfigMap <scope>-config.
type Dynamic struct {
	// Version of the text. Default: 1.
	Version int `json:"version,omitempty"`
	// Parameters that members set with SET GLOBAL while the server runs, by their names in the server. A parameter that is listed no more
	// goes back to what the file of the server says, or to the server's default.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// ParseDynamic understands the annotation config.
func ParseDynamic(text string) (Dynamic, error) {
	var d Dynamic
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return Dynamic{}, fmt.Errorf("cannot understand what members follow at run time: %w", err)
	}
	if err := known(d.Version); err != nil {
		return Dynamic{}, fmt.Errorf("cannot understand what members follow at run time: %w", err)
	}
	return d, nil
}

func known(version int) error {
	if version > ConfigVersion {
		return fmt.Errorf("it has version %d, and this image knows versions up to %d: use an image of the function's version", version, ConfigVersion)
	}
	return nil
}

// Backup says how backups are taken.
type Backup struct {
	// Enabled reports whether binary logs are archived and backups are taken.
	Enabled bool `json:"enabled"`
	// Stanza is the name that the backups and binary logs of this data are kept under, at Path in the bucket. Each generation has its own.
	Stanza string `json:"stanza"`
	// Path of the repository in the bucket.
	Path string `json:"path"`
	// Repository is the host of the volume that the repository is on, for a Secret in FolderBackup that does not open a bucket. Default: none.
	Repository string `json:"repository,omitempty"`
	// Queue is how many bytes of binary logs may wait for the archive before the oldest are dropped.
	Queue int64 `json:"queue"`
	// UntilLow lets more wait than Queue as long as the volume is not nearly full.
	UntilLow bool `json:"untilLow,omitempty"`
	// Members by the host names of their pods.
	Members []string `json:"members,omitempty"`
	// RetentionDays is how many days backups are kept. 0: RetentionFull counts.
	RetentionDays int `json:"retentionDays,omitempty"`
	// RetentionFull is how many backups are kept.
	RetentionFull int `json:"retentionFull,omitempty"`
	// Former are stanzas of generations that are not kept any more. Their backups expire by the same retention.
	Former []string `json:"former,omitempty"`
	// StartEmpty lets the Database begin without data although there are backups under its name.
	StartEmpty bool `json:"startEmpty,omitempty"`
	// RestorePoint is the name to give the current moment, once.
	RestorePoint string `json:"restorePoint,omitempty"`
	// Encrypted reports whether backups and binary logs are encrypted, with the key in FolderBackupKey.
	Encrypted bool `json:"encrypted,omitempty"`
	// Verify says what a restored backup has to prove. Nil: backups are not verified.
	Verify *Verify `json:"verify,omitempty"`
}

// Source is the backup that a generation begins with. The Secret of its bucket is in FolderSource.
type Source struct {
	// Path of the repository in the bucket.
	Path string `json:"path"`
	// Repository is the host of the volume that it is on, for a Secret in FolderSource that does not open a bucket. Default: none.
	Repository string `json:"repository,omitempty"`
	// Either is the host of the volume of another Database, whose certificate would be in FolderSourceRepository: it is not known whether its
	// backups are in a bucket or there. Default: they are where the Secret in FolderSource says.
	Either string `json:"either,omitempty"`
	// Stanza in the repository. Default: the one with the most recent backup.
	Stanza string `json:"stanza,omitempty"`
	// At is the time to restore. Default: the latest there is.
	At *time.Time `json:"at,omitempty"`
	// RestorePoint to restore, by its name, instead of a time.
	RestorePoint string `json:"restorePoint,omitempty"`
	// Encrypted reports whether the backup is encrypted, with the key in FolderSourceKey.
	Encrypted bool `json:"encrypted,omitempty"`
}

// Verify says how backups are verified.
type Verify struct {
	// Assertions about the data.
	Assertions []Assertion `json:"assertions,omitempty"`
	// MaxRestoreSeconds is how long a restore may take. Default: as long as the verification.
	MaxRestoreSeconds int64 `json:"maxRestoreSeconds,omitempty"`
}

// An Assertion is a statement of SQL that has to yield true.
type Assertion struct {
	Database string `json:"database"`
	SQL      string `json:"sql"`
}
