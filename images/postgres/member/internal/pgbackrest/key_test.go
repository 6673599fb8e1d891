// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
)

func TestReadEncrypted(t *testing.T) {
	const good = "correct horse battery staple"
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		want   string
		key    string
	}{
		"Good":     {"A line break at the end is that of an editor.", map[string]string{keyFile: good + "\n"}, good, ""},
		"Missing":  {"Without the key nothing is written, rather than as plain text.", nil, "", members.KeyMissing},
		"Empty":    {"Nothing is no key.", map[string]string{keyFile: ""}, "", members.KeyInvalid},
		"Short":    {"What can be guessed is no key.", map[string]string{keyFile: strings.Repeat("k", leastKey-1)}, "", members.KeyInvalid},
		"Long":     {"A file of another kind is no key.", map[string]string{keyFile: strings.Repeat("k", mostKey+1)}, "", members.KeyInvalid},
		"TwoLines": {"A line break would begin another option.", map[string]string{keyFile: good + "\nrepo1-path=/elsewhere"}, "", members.KeyInvalid},
		"Binary":   {"Bytes would be cut.", map[string]string{keyFile: good + "\x00" + good}, "", members.KeyInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadEncrypted(folder(t, secret()), folder(t, tc.files))
			if diff := cmp.Diff(tc.want, got.Passphrase); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			var n *NotReady
			if errors.As(err, &n) != (tc.key != "") || n != nil && n.Key != tc.key {
				t.Errorf("%s: got error %v, want one that the key is %q", tc.reason, err, tc.key)
			}
			if err != nil && tc.files[keyFile] != "" && strings.Contains(err.Error(), tc.files[keyFile]) {
				t.Errorf("%s: the error has the key: %v", tc.reason, err)
			}
			if text := Reader("/demo/orders", "s", got, Folders{}).String(); strings.Contains(text, "repo1-cipher-type=aes-256-cbc\nrepo1-cipher-pass="+good+"\n") != (tc.want != "") {
				t.Errorf("%s: the configuration is\n%s", tc.reason, text)
			}
		})
	}
	t.Run("Plain", func(t *testing.T) {
		got, err := ReadEncrypted(folder(t, secret()), "")
		if err != nil || strings.Contains(Reader("/demo/orders", "s", got, Folders{}).String(), "cipher") {
			t.Errorf("backups without a key are encrypted: %v", err)
		}
	})
}

func TestLocked(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, script string
		want           bool
	}{
		"Other": {"The key is another one.", "echo 'ERROR: [095]: unable to load info file: CryptoError: unable to flush' >&2; exit 95", true},
		"None":  {"There is no key.", "echo 'ERROR: [029]: invalid checksum' >&2; echo '       HINT: is or was the repo encrypted?' >&2; exit 29", true},
		"Told":  {"Asked for all there is, pgBackRest answers and says it there.", `echo '[{"name":"a","status":{"code":99,"message":"[CryptoError] unable to load info file"}}]'`, true},
		"Away":  {"A bucket that is away has nothing to do with it.", "echo 'ERROR: [039]: no connection' >&2; exit 39", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := program(t, tc.script).Info(context.Background(), "a")
			if err == nil || Locked(err) != tc.want || strings.Contains(err.Error(), "give the key") != tc.want {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
		})
	}
}
