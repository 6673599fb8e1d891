// SPDX-License-Identifier: Apache-2.0

// Package pgbackrest writes the configuration of pgBackRest, runs it, and understands what it says. Nothing here knows Kubernetes but
// by the files that are mounted.
package pgbackrest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Program is pgBackRest.
const Program = "/usr/bin/pgbackrest"

// Port that members serve those on who take backups.
const Port = 8432

// Client is the common name of the certificate of who takes backups. It is not that of a member: it opens pgBackRest and not PostgreSQL.
const Client = "backup"

// Settings of backups, from the ConfigMap of the Database. The function that composes it has the other half of this type.
type Settings struct {
	// Enabled tells that the write-ahead log is archived and backups are taken. While they are not, segments are let go.
	Enabled bool `json:"enabled"`
	// Stanza that this Database's backups are kept under.
	Stanza string `json:"stanza"`
	// Path of the repository in the bucket. In a volume there is one repository, and nothing else has a place there.
	Path string `json:"path"`
	// Repository is the host of the repository when backups go to a volume, which is served there, unless the Secret that is mounted
	// is that of a bucket. Default: a bucket.
	Repository string `json:"repository,omitempty"`
	// Queue is how many bytes of the write-ahead log may wait for the archive before the oldest are let go.
	Queue int64 `json:"queue"`
	// Members by the names of their pods' hosts.
	Members []string `json:"members,omitempty"`
	// RetentionDays, or else RetentionFull: how long, or how many full backups with all that builds on them are kept.
	RetentionDays int `json:"retentionDays,omitempty"`
	RetentionFull int `json:"retentionFull,omitempty"`
	// StartEmpty lets the Database begin without data beside backups of its name.
	StartEmpty bool `json:"startEmpty,omitempty"`
	// RestorePoint is the name to give the moment, once.
	RestorePoint string `json:"restorePoint,omitempty"`
	// Encrypted tells that the repository is encrypted, with a key that is mounted.
	Encrypted bool `json:"encrypted,omitempty"`
	// Verify says what is asked of a backup that was restored to prove that it can be.
	Verify *Verify `json:"verify,omitempty"`
}

// Verify says how backups are verified.
type Verify struct {
	// Assertions about the data.
	Assertions []Assertion `json:"assertions,omitempty"`
	// MaxRestoreSeconds is how long a restore may take. Default: as long as the verification.
	MaxRestoreSeconds int64 `json:"maxRestoreSeconds,omitempty"`
	// Preload are the libraries that the members' server loads at its start.
	Preload []string `json:"preload,omitempty"`
}

// An Assertion is a statement of SQL that has to yield true.
type Assertion struct {
	Database string `json:"database"`
	SQL      string `json:"sql"`
}

// Object is the key of what Capstan keeps beside backups, in the repository at a path.
func Object(path, name string) string { return strings.Trim(path, "/") + "/capstan/" + name + ".json" }

// Source that a Database begins with.
type Source struct {
	// Path of the repository in the bucket.
	Path string `json:"path"`
	// Repository is the host of the repository when it is in a volume. Default: a bucket.
	Repository string `json:"repository,omitempty"`
	// Either is that host when it is not known whether the source has a bucket or a volume: the Secret that is there tells.
	Either string `json:"either,omitempty"`
	// Stanza in it. Default: the one that has the most recent backup.
	Stanza string `json:"stanza,omitempty"`
	// At is the time to restore. Default: the latest there is.
	At *time.Time `json:"at,omitempty"`
	// RestorePoint to restore, by its name, instead of a time.
	RestorePoint string `json:"restorePoint,omitempty"`
	// Encrypted tells that the repository is encrypted, with a key that is mounted.
	Encrypted bool `json:"encrypted,omitempty"`
}

// Wanted is what the ConfigMap says of backups. Either may be absent.
type Wanted struct {
	Backup *Settings `json:"backup"`
	From   *Source   `json:"from"`
}

// ReadWanted from the file that the ConfigMap is mounted as.
func ReadWanted(file string) (Wanted, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return Wanted{}, fmt.Errorf("cannot read what the Database is to have: %w", err)
	}
	var w Wanted
	if err := json.Unmarshal(raw, &w); err != nil {
		return Wanted{}, fmt.Errorf("cannot understand what the Database is to have: %w", err)
	}
	return w, nil
}

// A Repository is a bucket, as the connection Secret of a Bucket describes it, or a volume.
type Repository struct {
	Host, Port, Region, Bucket, Key, Secret, Token string
	// Served is how to reach the host that serves a volume, and Local the folder on that host. Nil and "" for a bucket.
	Served *Served
	Local  string
	// CA is the file of the authority of the server, if it is not one that everybody trusts.
	CA string
	// Passphrase that it is encrypted with, if it is.
	Passphrase string
}

// NotReady is why a Repository cannot be used as long as its Secret is as it is.
type NotReady struct { //nolint:errname // It is for a person.
	Message string
	// Key is one of members.Key… when it is the key that is wrong.
	Key string
}

// Error is the message.
func (n *NotReady) Error() string { return n.Message }

// ReadRepository from the folder that the connection Secret is mounted to. The error is a *NotReady when something is missing there.
func ReadRepository(dir string) (Repository, error) {
	value := map[string]string{}
	for _, key := range []string{"endpoint", "region", "bucket", "accessKeyId", "secretAccessKey", "sessionToken"} {
		raw, err := os.ReadFile(filepath.Join(dir, key))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Repository{}, fmt.Errorf("cannot read the connection of the bucket: %w", err)
		}
		text := strings.TrimSpace(string(raw))
		if strings.ContainsAny(text, "\n\r\x00") {
			return Repository{}, &NotReady{Message: fmt.Sprintf("the value %s of the bucket's connection Secret has more than one line: correct it", key)}
		}
		value[key] = text
	}
	if len(value) == 0 {
		return Repository{}, &NotReady{Message: "the connection Secret of the bucket is not there: see the Bucket, and whether provider-capstan runs"}
	}
	for _, key := range []string{"endpoint", "region", "bucket", "accessKeyId", "secretAccessKey"} {
		if value[key] == "" {
			message := "the connection Secret of the bucket has no " + key
			if strings.HasSuffix(key, "Id") || strings.HasSuffix(key, "Key") {
				message += ": let the provider's config give workloadCredentials to those who use buckets"
			}
			return Repository{}, &NotReady{Message: message}
		}
	}
	rest, ok := strings.CutPrefix(value["endpoint"], "https://")
	rest = strings.TrimRight(rest, "/")
	if !ok || rest == "" || strings.Contains(rest, "/") {
		return Repository{}, &NotReady{Message: fmt.Sprintf("the endpoint %q cannot be used: backups need https://, and nothing behind the host", value["endpoint"])}
	}
	host, port := rest, "443"
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, ']') {
		host, port = rest[:i], rest[i+1:]
	}
	r := Repository{
		Host: strings.Trim(host, "[]"), Port: port, Region: value["region"], Bucket: value["bucket"],
		Key: value["accessKeyId"], Secret: value["secretAccessKey"], Token: value["sessionToken"],
	}
	if _, err := os.Stat(filepath.Join(dir, "ca.crt")); err == nil {
		r.CA = filepath.Join(dir, "ca.crt")
	}
	return r, nil
}
