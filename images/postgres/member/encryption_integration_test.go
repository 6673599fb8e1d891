// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// Keys of backups. The first has all that could be taken for a part of a configuration, and the other nothing.
const (
	theKey   = `a=b [global] "c" 'd' # ; \ $HOME %n 0123456789`
	otherKey = "nothing opens with this key"
)

// key of backups in a folder, or none.
func (c *cluster) key(folder, key string) {
	c.t.Helper()
	if key != "" {
		c.file(folder+"/passphrase", []byte(key+"\n"))
		return
	}
	if err := os.Remove(filepath.Join(c.base, folder, "passphrase")); err != nil {
		c.t.Fatal(err)
	}
}

// plain objects of a path: those in which a file begins that zstd compressed, and those that do not begin as OpenSSL's ciphers
// do. In bundles files begin with their salt.
func (s *store) plain(t *testing.T, path string) (plain []string, all int) {
	t.Helper()
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(strings.Trim(path, "/") + "/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			if strings.Contains(*o.Key, "/capstan/") {
				continue
			}
			got, err := s.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: o.Key})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(got.Body)
			_ = got.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			all++
			salted := strings.Contains(*o.Key, "/bundle/") || bytes.HasPrefix(raw, []byte("Salted__"))
			if !salted || bytes.Contains(raw, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
				plain = append(plain, *o.Key)
			}
		}
	}
	return plain, all
}

// exposed are files below a folder with a text.
func exposed(t *testing.T, text string, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range files {
		// Processes end meanwhile.
		if raw, err := os.ReadFile(f); err == nil && bytes.Contains(raw, []byte(text)) {
			found = append(found, f)
		}
	}
	return found
}

// TestEncrypted: with a key nothing in the bucket is plain, it is backed up, verified and restored as without one, and not
// restored with another key or none. A key that goes or changes is told, what is written waits, and all goes on when it is back.
func TestEncrypted(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a"}, archives)
	s.connection(c, "bucket")
	c.key("backup-key", theKey)
	settings := c.settings("a")
	settings.Encrypted, settings.Verify = true, &pgmember.Verify{}
	c.want(pgmember.Config{Backup: &settings})
	begin(t, c, "a")
	conn, err := c.connect(t.Context(), "a", "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	commit := func(id int) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), "insert into public.ledger (id) values ($1)", id); err != nil {
			t.Fatal(err)
		}
	}
	commit(1)
	taken, said := c.backup()
	if taken.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", said)
	}
	commit(2)
	c.switchLog("a")
	c.eventually("all is archived", time.Minute, func() bool { return c.archived("a") })
	c.eventually("the leader tells of the backup", 2*time.Minute, func() bool {
		b := c.told("a")
		return b.Label == taken.Label && b.Key == "" && b.Archive == members.ArchiveOK
	})
	t.Run("Verified", func(t *testing.T) {
		_, said := c.verify("one")
		if got := s.verification(t, settings); got.Failure != "" || got.Passed.Backup != taken.Label {
			t.Errorf("the verification came to %+v: %s", got, said)
		}
	})
	t.Run("Unreadable", func(t *testing.T) {
		plain, all := s.plain(t, settings.Path)
		if len(plain) > 0 || all < 6 {
			t.Errorf("of %d objects these are plain: %v", all, plain)
		}
	})
	t.Run("Unexposed", func(t *testing.T) {
		found := append(exposed(t, theKey, filepath.Join(c.logs, "*")), exposed(t, theKey, filepath.Join(c.base, "config*", "*"))...)
		found = append(found, exposed(t, theKey, "/proc/[0-9]*/cmdline")...)
		if found = append(found, exposed(t, theKey, "/proc/[0-9]*/environ")...); len(found) > 0 {
			t.Errorf("the key is in %v", found)
		}
	})
	copyOf := func(t *testing.T, encrypted bool, key string) *cluster {
		t.Helper()
		d := newClusterWith(t, []string{"a"}, restoring)
		s.connection(d, "bucket")
		s.connection(d, "source")
		if key != "" {
			d.key("source-key", key)
		}
		d.want(pgmember.Config{Backup: new(d.settings("a")), From: &pgmember.Source{Path: settings.Path, Encrypted: encrypted}})
		d.start("a")
		return d
	}
	for name, tc := range map[string]struct {
		reason    string
		encrypted bool
		key       string
		want      string
	}{
		"WithoutKey": {"Who has the bucket has nothing.", false, "", "needs one and none is"},
		"OtherKey":   {"Another key opens nothing.", true, otherKey, "does not open with the key"},
		"NoKeyYet":   {"The Secret is not there.", true, "", "is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			d := copyOf(t, tc.encrypted, tc.key)
			d.eventually("it is told", 2*time.Minute, func() bool {
				reason, message := d.blockedBy("a")
				return reason == members.ReasonRestoreFailed && strings.Contains(message, tc.want)
			})
			_, message := d.blockedBy("a")
			t.Logf("%s Told: %s", tc.reason, message)
			if d.probe("a", "/readyz") == nil {
				t.Errorf("%s: it serves", tc.reason)
			}
		})
	}
	t.Run("WithKey", func(t *testing.T) {
		d := copyOf(t, true, theKey)
		d.eventually("the copy is ready", 3*time.Minute, func() bool { return d.ready("a") })
		d.loggable("a")
		if got := d.query("a", "select count(*)::text from public.ledger"); got != "2" {
			t.Errorf("the copy has %s rows, want 2", got)
		}
	})
	t.Run("Lost", func(t *testing.T) {
		trouble := func(key string) func() bool {
			return func() bool {
				b := c.told("a")
				return b.Key == key && b.Archive == members.ArchiveFailing && b.Message != ""
			}
		}
		c.key("backup-key", "")
		c.eventually("it is told that the key is not there", time.Minute, trouble(members.KeyMissing))
		commit(3)
		c.key("backup-key", "short")
		c.eventually("it is told that it is too short", time.Minute, trouble(members.KeyInvalid))
		c.key("backup-key", otherKey)
		commit(4)
		c.switchLog("a")
		c.eventually("it is told that it is another one", 3*time.Minute, trouble(members.KeyMismatch))
		t.Logf("told: %s", c.told("a").Message)
		if _, said := c.backup(); !strings.Contains(said, "does not open with the key") {
			t.Errorf("with another key the backup says: %s", said)
		}
		commit(5)
		if err := errors.Join(c.probe("a", "/readyz"), c.probe("a", "/livez")); err != nil {
			t.Errorf("the member does not serve: %v", err)
		}
		c.key("backup-key", theKey)
		c.eventually("all is well again", 3*time.Minute, func() bool {
			b := c.told("a")
			return b.Key == "" && b.Unread == "" && b.Archive == members.ArchiveOK && c.archived("a")
		})
		if plain, _ := s.plain(t, settings.Path); len(plain) > 0 {
			t.Errorf("meanwhile these came into the bucket as plain text: %v", plain)
		}
		if again, said := c.backup(); again.Type != pgbackrest.Incremental {
			t.Errorf("it is not backed up again: %s", said)
		}
		if _, err := os.Stat(filepath.Join(c.base, "data-a", filepath.Base(layout.Archive))); err != nil {
			t.Errorf("what archiving came to is not kept: %v", err)
		}
	})
}
