// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import (
	"errors"
	"regexp"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/vault"
)

// garbled is what pgBackRest says of an information file that does not open with the key it has, or needs one and none is. It
// quotes what it took for the file's first line, which is other bytes each time. Of other files it says what is locked.
var (
	garbled = regexp.MustCompile(`FormatError: key/value found outside of section`)
	locked  = regexp.MustCompile(`CryptoError|(is|was) the repo encrypted|` + garbled.String())
	files   = regexp.MustCompile(`info file '([^']*)'`)
)

// ReadEncrypted is the repository of Read, which is encrypted with the key in the folder of its own, unless that is "". The error
// is a *NotReadyError when something is missing or the key cannot be used.
func ReadEncrypted(dir, key, server string) (Repository, error) {
	r, err := Read(dir, server)
	if err != nil {
		return r, err
	}
	return r.withKey(key)
}

// Configured is the repository of the Database's backups, with the key if they are encrypted. Nothing is ever written without a
// key that is requested.
func Configured(s pgmember.Backup) (Repository, error) {
	return ReadEncrypted(pgmember.FolderBackup, KeyIf(s.Encrypted, pgmember.FolderBackupKey), s.Repository)
}

// KeyIf backups are encrypted is the folder of the key, and else "".
func KeyIf(encrypted bool, folder string) string {
	if encrypted {
		return folder
	}
	return ""
}

// Read the repository whose Secret is mounted to a folder, and whose key is not needed: the one in a bucket, or else in the volume
// at a host. Which one it is the Secret says: a pod that was made before backups moved continues with what it has until it is made
// again.
func Read(dir, server string) (Repository, error) {
	if server != "" && !vault.IsBucket(dir) {
		return ReadServed(dir, server)
	}
	return ReadRepository(dir)
}

// Locked reports whether pgBackRest failed because what is in the repository does not open with the key it has, or without one.
func Locked(err error) bool {
	var f *Failure
	return errors.As(err, &f) && strings.HasPrefix(f.Said, unopened)
}

// unopened is what it means for people.
const unopened = "what is in the bucket does not open with the key that is given, or needs one and none is, or is damaged: give the key that it was made with"

// explained is what pgBackRest said, and what it means when it is about a key.
func explained(said string) string {
	switch {
	case !locked.MatchString(said):
		return said
	case !garbled.MatchString(said):
		return unopened + "; pgBackRest says: " + said
	}
	if file := files.FindStringSubmatch(said); file != nil {
		return unopened + "; it is " + file[1]
	}
	return unopened
}
