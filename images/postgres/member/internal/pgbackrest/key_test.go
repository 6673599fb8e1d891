// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/bucket"
)

func TestReadEncrypted(t *testing.T) {
	const good = "correct horse battery staple"
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		want   string
		key    string
	}{
		"Good":     {"A line break at the end is that of an editor.", map[string]string{pgmember.FileBackupKey: good + "\n"}, good, ""},
		"Missing":  {"Without the key nothing is written, rather than as plain text.", nil, "", members.KeyMissing},
		"Empty":    {"Nothing is no key.", map[string]string{pgmember.FileBackupKey: ""}, "", members.KeyInvalid},
		"Short":    {"What can be guessed is no key.", map[string]string{pgmember.FileBackupKey: strings.Repeat("k", bucket.LeastKey-1)}, "", members.KeyInvalid},
		"Long":     {"A file of another kind is no key.", map[string]string{pgmember.FileBackupKey: strings.Repeat("k", bucket.MostKey+1)}, "", members.KeyInvalid},
		"TwoLines": {"A line break would begin another option.", map[string]string{pgmember.FileBackupKey: good + "\nrepo1-path=/elsewhere"}, "", members.KeyInvalid},
		"Binary":   {"Bytes would be cut.", map[string]string{pgmember.FileBackupKey: good + "\x00" + good}, "", members.KeyInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadEncrypted(folder(t, secret()), folder(t, tc.files), "")
			if diff := cmp.Diff(tc.want, got.Passphrase); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			var n *NotReadyError
			if errors.As(err, &n) != (tc.key != "") || n != nil && n.Key != tc.key {
				t.Errorf("%s: got error %v, want one that the key is %q", tc.reason, err, tc.key)
			}
			if err != nil && tc.files[pgmember.FileBackupKey] != "" && strings.Contains(err.Error(), tc.files[pgmember.FileBackupKey]) {
				t.Errorf("%s: the error has the key: %v", tc.reason, err)
			}
			if text := Reader("/demo/orders", "s", 0, got, Folders{}).String(); strings.Contains(text, "repo1-cipher-type=aes-256-cbc\nrepo1-cipher-pass="+good+"\n") != (tc.want != "") {
				t.Errorf("%s: the configuration is\n%s", tc.reason, text)
			}
		})
	}
	t.Run("Plain", func(t *testing.T) {
		got, err := ReadEncrypted(folder(t, secret()), "", "")
		if err != nil || strings.Contains(Reader("/demo/orders", "s", 0, got, Folders{}).String(), "cipher") {
			t.Errorf("backups without a key are encrypted: %v", err)
		}
	})
}

func TestLocked(t *testing.T) {
	const (
		load = `unable to load info file '/demo/orders/backup/a/backup.info' or '/demo/orders/backup/a/backup.info.copy':`
		line = `FormatError: key/value found outside of section at line 1: `
	)
	// told as pgBackRest 2.60 does: the stanza says nothing, and its repository why.
	told := func(message string) string {
		return `printf '%b' '[{"backup":[],"name":"a","repo":[{"cipher":"none","key":1,"status":{"code":99,"message":"[FormatError] ` +
			strings.NewReplacer(`'`, `'\''`).Replace(load+`\\n`+line+message) + `"}}],"status":{"code":99,"message":"other"}}]'`
	}
	for name, tc := range map[string]struct {
		reason, script string
		locked         bool
		want           string
	}{
		"Flush":   {"A file that has no form is locked.", "echo 'ERROR: [095]: unable to get 1.zst: CryptoError: unable to flush' >&2; exit 95", true, "unable to flush"},
		"Header":  {"A plain one is not what the key opens.", "echo 'ERROR: [095]: cipher header invalid' >&2; echo '       HINT: is or was the repo encrypted?' >&2; exit 95", true, "cipher header"},
		"Garbled": {"What it quotes is no word.", "printf '%b' \"ERROR: [029]: " + load + `\n       ` + line + `S\0301\0017w` + "\\n\" >&2; exit 29", true, "it is /demo/orders/backup/a/backup.info"},
		"Info":    {"Asked for all there is, it answers and says it there.", told("Salted__h"), true, "it is /demo/orders/backup/a/backup.info"},
		"Bytes":   {"Not all of which is JSON.", told(`S\0301\0017w`), true, "it is /demo/orders/backup/a/backup.info"},
		"Away":    {"A bucket that is away has nothing to do with it.", "echo 'ERROR: [039]: no connection' >&2; exit 39", false, "no connection"},
		"Stanza":  {"Other trouble is told as it is.", `echo '[{"name":"a","repo":[{"status":{"code":99,"message":"[PathMissingError] no path"}}],"status":{"code":99,"message":"other"}}]'`, false, "no path"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := program(t, tc.script).Info(context.Background(), "a")
			if err == nil || Locked(err) != tc.locked || !strings.Contains(err.Error(), tc.want) || strings.ContainsAny(err.Error(), "\x0f\uFFFD") || strings.Contains(err.Error(), "Salted") {
				t.Errorf("%s: got error %q", tc.reason, err)
			}
		})
	}
}
