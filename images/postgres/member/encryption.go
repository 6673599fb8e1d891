// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// repositoryOf the Database's backups, with the key if they are encrypted. Nothing is ever written without one that is asked for.
func repositoryOf(s pgbackrest.Settings) (pgbackrest.Repository, error) {
	return pgbackrest.ReadEncrypted(layout.Bucket, keyIf(s.Encrypted, layout.BackupKey))
}

// repositoryFrom that the Database begins with.
func repositoryFrom(s pgbackrest.Source) (pgbackrest.Repository, error) {
	return pgbackrest.ReadEncrypted(layout.Source, keyIf(s.Encrypted, layout.SourceKey))
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
