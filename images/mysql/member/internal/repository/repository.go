// SPDX-License-Identifier: Apache-2.0

// Package repository keeps physical copies and binary logs of a Database in a bucket.
package repository

import (
	"context"
	"errors"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// Errors of what is in a repository. Errors of its Secret and its key are a *NotReady.
var (
	// ErrForeign: the stanza holds the data of another group. Nothing is written to it.
	ErrForeign = errors.New("the stanza has the data of another group")
	// ErrDiffers: there is a binary log of this name with another content.
	ErrDiffers = errors.New("there is one of this name with another content")
	// ErrDamaged: what came from the bucket is not what was brought there.
	ErrDamaged = errors.New("it is damaged")
	// ErrNotFound: there is no such backup or binary log.
	ErrNotFound = errors.New("the repository has none of that name")
)

// NotReady is why a repository cannot be used as long as its Secrets are as they are.
type NotReady struct { //nolint:errname // It is for a person.
	Message string
	// Key is one of members.Key… when it is the key that is wrong.
	Key string
}

func (n *NotReady) Error() string { return n.Message }

// A Place is where a repository is.
type Place struct {
	// Path in the bucket, and Stanza there. Without a Stanza nothing can be written, and Backups are the ones of all stanzas.
	Path, Stanza string
	// Secret is the folder of the bucket's connection Secret, and Key the folder of the key; "" when nothing is encrypted.
	Secret, Key string
	// Scratch is a folder for files that are of no use after the program ends.
	Scratch string
}

// A Repository in a bucket.
type Repository struct {
	place Place
}

// A Backup is a physical copy.
type Backup struct {
	// Label is unique in the repository. Save gives it.
	Label string `json:"label"`
	// Stanza that it belongs to, and Series of the server, as in 9.7, with its Version, as in 9.7.4.
	Stanza  string `json:"stanza"`
	Series  string `json:"series"`
	Version string `json:"version"`
	// Began and Ended tell when the copy was taken.
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	// Set has the transactions in the copy, and Group is the name of the group that it is of.
	Set   gtid.Set `json:"set"`
	Group string   `json:"group"`
	// Size of the data, and what the backup Added to the bucket, in bytes. Save tells both.
	Size  int64 `json:"size"`
	Added int64 `json:"added"`
}

// A Log is a binary log that is closed.
type Log struct {
	// Server is the UUID of the server that wrote it, and File its name, as in binlog.000012.
	Server string `json:"server"`
	File   string `json:"file"`
	// Previous has the transactions before it, as the log tells, and Set its own.
	Previous gtid.Set `json:"previous"`
	Set      gtid.Set `json:"set"`
	// First and Last are when its first and its last transaction were committed; zero without any.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Size of the file in bytes, and SHA256 of its content in hexadecimal digits. SaveLog tells both.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Retention says which backups stay. The last one of each stanza that is kept always stays.
type Retention struct {
	// Days that backups are kept. 0: Full counts.
	Days int
	// Full is how many backups are kept.
	Full int
	// Former stanzas, whose backups expire as well.
	Former []string
}

var errUnfinished = errors.New("the repository is not built yet")

// Open the repository at a place. The error is a *NotReady when a Secret or the key is missing or wrong.
func Open(_ context.Context, p Place) (*Repository, error) { return &Repository{p}, errUnfinished }

// Claim the stanza for a group: from then on it takes data of no other. The error is ErrForeign when another one has it.
func (r *Repository) Claim(_ context.Context, _ string) error { return errUnfinished }

// Stanzas that have backups, by name.
func (r *Repository) Stanzas(_ context.Context) ([]string, error) { return nil, errUnfinished }

// Backups of the stanza, oldest first.
func (r *Repository) Backups(_ context.Context) ([]Backup, error) { return nil, errUnfinished }

// Save the folder of data as a backup of the stanza, which it claims for the group of the backup.
func (r *Repository) Save(_ context.Context, _ string, b Backup) (Backup, error) {
	return b, errUnfinished
}

// Load the backup with a label into a folder of data, which must be empty or not exist.
func (r *Repository) Load(_ context.Context, _, _ string) error { return errUnfinished }

// Expire backups, and the binary logs that no restore needs any more.
func (r *Repository) Expire(_ context.Context, _ Retention, _ time.Time) error { return errUnfinished }

// Logs of the stanza, by server and name.
func (r *Repository) Logs(_ context.Context) ([]Log, error) { return nil, errUnfinished }

// SaveLog brings the file at a path to the stanza, once: it is no error when it is there with the same content, and ErrDiffers when it
// is there with another.
func (r *Repository) SaveLog(_ context.Context, _ string, _ Log) error { return errUnfinished }

// LoadLog writes a log to a file. The error is ErrDamaged when the content is not the one that was saved.
func (r *Repository) LoadLog(_ context.Context, _ Log, _ string) error { return errUnfinished }

// ReadObject reads the JSON of a small object beside the backups, such as restore-points, into a value. It reports whether there is one.
func (r *Repository) ReadObject(_ context.Context, _ string, _ any) (bool, error) {
	return false, errUnfinished
}

// WriteObject writes a value as JSON to a small object.
func (r *Repository) WriteObject(_ context.Context, _ string, _ any) error { return errUnfinished }
