// SPDX-License-Identifier: Apache-2.0

// Package source opens the repository of the backup that a Database begins with, or whose archive it follows. It only reads there.
package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/existing"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// A Source is an opened repository.
type Source struct {
	Repository pgbackrest.Repository

	from    pgmember.Source
	folders pgbackrest.Folders
}

// Open the repository of a source.
func Open(ctx context.Context, from pgmember.Source) (*Source, error) {
	lock := filepath.Join(pgmember.FolderPrivate, "restore-lock")
	if err := durable.Folders(lock, layout.SourceSpool); err != nil {
		return nil, err
	}
	folders := pgbackrest.Folders{Data: pgmember.FolderData, Socket: pgmember.FolderSocket, Spool: layout.SourceSpool, Lock: lock}
	where, err := repository(ctx, from, folders)
	if err != nil {
		return nil, err
	}
	return &Source{where, from, folders}, nil
}

// Into restores to another folder than the data's.
func (s *Source) Into(folder string) { s.folders.Data = folder }

// Runner of pgBackRest for one stanza, or for all with "", with a configuration that is written to a file.
func (s *Source) Runner(stanza, file string) (pgbackrest.Runner, error) {
	return pgbackrest.Reader(s.from.Path, stanza, s.from.Processes, s.Repository, s.folders).Runner(file)
}

// Stanzas of the repository.
func (s *Source) Stanzas(ctx context.Context, file string) ([]pgbackrest.Stanza, error) {
	run, err := s.Runner("", file)
	if err != nil {
		return nil, err
	}
	return run.Info(ctx, "")
}

// ErrUnknown reports that no stanza of the repository is of the data.
var ErrUnknown = errors.New("the repository has no backup of the data with this system identifier: see spec.from.backup of the Database")

// Followed stanza: the one that is named, or the one with the latest backup of the data with a system identifier.
func Followed(all []pgbackrest.Stanza, from pgmember.Source, system string) (pgbackrest.Stanza, error) {
	named := slices.DeleteFunc(slices.Clone(all), func(s pgbackrest.Stanza) bool {
		return from.Stanza != "" && s.Name != from.Stanza || strconv.FormatUint(s.Origin().System, 10) != system
	})
	best := pgbackrest.Latest(named)
	if best.Name == "" {
		return best, ErrUnknown
	}
	return best, nil
}

// Note the stanza that is followed, for who fetches from it.
func Note(stanza string) error { return durable.Write(layout.SourceStanza, []byte(stanza)) }

// Noted is the stanza that is followed; "" while it is not known.
func Noted() string {
	raw, err := os.ReadFile(layout.SourceStanza)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// repository that the Database begins with. A source that has a bucket and a volume has moved: the one with the latest backup
// is meant.
func repository(ctx context.Context, s pgmember.Source, f pgbackrest.Folders) (pgbackrest.Repository, error) {
	key := pgbackrest.KeyIf(s.Encrypted, pgmember.FolderSourceKey)
	if s.Either == "" {
		return pgbackrest.ReadEncrypted(pgmember.FolderSource, key, s.Repository)
	}
	inBucket, inVolume := existing.Mounted(pgmember.FolderSource), existing.Mounted(pgmember.FolderSourceRepository)
	switch {
	case !inBucket && !inVolume:
		return pgbackrest.Repository{}, &pgbackrest.NotReadyError{Message: existing.NoSource}
	case !inVolume:
		return pgbackrest.ReadEncrypted(pgmember.FolderSource, key, "")
	case !inBucket:
		return pgbackrest.ReadEncrypted(pgmember.FolderSourceRepository, key, s.Either)
	}
	bucket, err := pgbackrest.ReadEncrypted(pgmember.FolderSource, key, "")
	if err != nil {
		return pgbackrest.Repository{}, err
	}
	volume, err := pgbackrest.ReadEncrypted(pgmember.FolderSourceRepository, key, s.Either)
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

// latestOf the stanzas of a repository, or the one that is named.
func latestOf(ctx context.Context, r pgbackrest.Repository, s pgmember.Source, f pgbackrest.Folders) (pgbackrest.Stanza, error) {
	run, err := pgbackrest.Reader(s.Path, s.Stanza, s.Processes, r, f).Runner(filepath.Join(f.Lock, "latest.conf"))
	if err != nil {
		return pgbackrest.Stanza{}, err
	}
	all, err := run.Info(ctx, s.Stanza)
	return pgbackrest.Latest(all), err
}
