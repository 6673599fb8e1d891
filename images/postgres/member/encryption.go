// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// repositoryOf the Database's backups, with the key if they are encrypted. Nothing is ever written without one that is asked for.
func repositoryOf(s pgbackrest.Settings) (pgbackrest.Repository, error) {
	return pgbackrest.ReadEncrypted(layout.Bucket, keyIf(s.Encrypted, layout.BackupKey), s.Repository)
}

// objectsOf the Database, beside its backups.
func objectsOf(s pgbackrest.Settings) (*objectstore.Store, error) {
	repository, err := pgbackrest.Read(layout.Bucket, s.Repository)
	if err != nil {
		return nil, err
	}
	return objectstore.Open(repository)
}

// repositoryFrom that the Database begins with. A source that has a bucket and a volume has moved: the one with the latest backup is
// meant.
func repositoryFrom(ctx context.Context, s pgbackrest.Source, f pgbackrest.Folders) (pgbackrest.Repository, error) {
	key := keyIf(s.Encrypted, layout.SourceKey)
	if s.Either == "" {
		return pgbackrest.ReadEncrypted(layout.Source, key, s.Repository)
	}
	inBucket, inVolume := mounted(layout.Source), mounted(layout.SourceRepository)
	switch {
	case !inBucket && !inVolume:
		return pgbackrest.Repository{}, &pgbackrest.NotReady{Message: "the source has neither the connection Secret of a bucket nor that of a volume of backups: " +
			"see whether it has spec.backup, and its condition BackupFresh"}
	case !inVolume:
		return pgbackrest.ReadEncrypted(layout.Source, key, "")
	case !inBucket:
		return pgbackrest.ReadEncrypted(layout.SourceRepository, key, s.Either)
	}
	bucket, err := pgbackrest.ReadEncrypted(layout.Source, key, "")
	if err != nil {
		return pgbackrest.Repository{}, err
	}
	volume, err := pgbackrest.ReadEncrypted(layout.SourceRepository, key, s.Either)
	if err != nil {
		return pgbackrest.Repository{}, err
	}
	ofBucket, err := latestOf(ctx, bucket, s, f)
	if err != nil {
		return pgbackrest.Repository{}, err
	}
	ofVolume, err := latestOf(ctx, volume, s, f)
	if err != nil {
		return pgbackrest.Repository{}, err
	}
	if ofBucket.Ended().After(ofVolume.Ended()) {
		return bucket, nil
	}
	return volume, nil
}

// mounted tells whether a Secret is there that is mounted to a folder, and has anything. The kubelet's own entries, which begin with two
// dots, are there without any.
func mounted(folder string) bool {
	names, err := os.ReadDir(folder)
	return err == nil && slices.ContainsFunc(names, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), "..") })
}

// latestOf the stanzas of a repository, or the one that is named.
func latestOf(ctx context.Context, r pgbackrest.Repository, s pgbackrest.Source, f pgbackrest.Folders) (pgbackrest.Stanza, error) {
	file := filepath.Join(f.Lock, "latest.conf")
	if _, err := pgbackrest.Reader(s.Path, s.Stanza, r, f).Write(file); err != nil {
		return pgbackrest.Stanza{}, err
	}
	all, err := pgbackrest.Runner{Program: pgbackrest.Program, Config: file}.Info(ctx, s.Stanza)
	return pgbackrest.Latest(all), err
}

// keyIf there is one.
func keyIf(encrypted bool, folder string) string {
	if encrypted {
		return folder
	}
	return ""
}

// keyTrouble is what is wrong with the key, in one word of members; nothing when that is not what is wrong.
func keyTrouble(err error) string {
	var missing *pgbackrest.NotReady
	switch {
	case errors.As(err, &missing):
		return missing.Key
	case pgbackrest.Locked(err):
		return members.KeyMismatch
	default:
		return ""
	}
}
