// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// verification is what the bucket has of verifications.
func (s *store) verification(t *testing.T) (r members.VerificationReport) {
	t.Helper()
	keys := s.keys(t, "/verification/")
	if len(keys) != 1 {
		t.Fatalf("%d objects have results of verifications", len(keys))
	}
	got, err := s.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String(keys[0])})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	if err := json.NewDecoder(got.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestVerify: a good backup is verified, and nothing is left of it. What is wrong with one is found, each with its cause.
func TestVerify(t *testing.T) {
	c := newBackedUp(t, "a")
	s := c.bucket
	begin(t, c, "a")
	conn := c.connect("a", consumer, "shop")
	defer func() { _ = conn.Close() }()
	insert := func(id int) {
		t.Helper()
		if _, err := conn.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO ledger (id) VALUES (%d)", id)); err != nil {
			t.Fatal(err)
		}
	}
	insert(1)
	// One that is killed before its end is none, and is in nothing's way.
	if said, _ := c.job(`"msg":"copied"`, "backup"); strings.Contains(said, `{"label"`) {
		t.Fatalf("it was not killed in time: %s", said)
	}
	if all, err := c.repository().Backups(t.Context()); err != nil || len(all) > 0 {
		t.Fatalf("there are the backups %v, %v", all, err)
	}
	taken, said := c.backup()
	if taken.Label == "" || taken.Size == 0 || taken.Type != "full" {
		t.Fatalf("no backup: %+v: %s", taken, said)
	}
	if !strings.Contains(said, `"leader":true`) {
		t.Errorf("the only member is the leader: %s", said)
	}
	insert(2)
	last := c.committed("a")
	verify := func(id string, v mysqlmember.Verify) (members.VerificationReport, string) {
		t.Helper()
		c.config.Backup.Verify = &v
		c.configure()
		said, left := c.job("", "verify", "--id="+id)
		if len(left) > 0 {
			t.Errorf("it left %v on its volume", left)
		}
		return s.verification(t), said
	}
	passed, said := verify("one", mysqlmember.Verify{Assertions: []mysqlmember.Assertion{
		{Database: "shop", SQL: "select count(*) = 2 from ledger"}, {Database: "shop", SQL: "select @@super_read_only and current_user() like 'capstan_verifier@%';"},
	}})
	if passed.Failure != "" || passed.ID != "one" || passed.Began != "" || passed.Passed.Backup != taken.Label || passed.Passed.Assertions != 2 ||
		passed.Passed.ReplayedTo != last[len(last)-1].Committed.Format(time.RFC3339) {
		t.Fatalf("the verification came to %+v: %s", passed, said)
	}
	fails := func(name, kind, message string, v mysqlmember.Verify) {
		t.Helper()
		got, said := verify(name, v)
		if got.Failure != kind || !strings.Contains(got.Message, message) || got.ID != name || got.Backup != taken.Label || got.Passed != passed.Passed {
			t.Errorf("%s: the verification came to %+v: %s", name, got, said)
		}
	}
	fails("assertion", members.VerifyAssertion, "assertions[0] in database \"shop\": it does not hold", mysqlmember.Verify{Assertions: []mysqlmember.Assertion{
		{Database: "shop", SQL: "select count(*) = 3 from ledger"},
	}})
	fails("harm", members.VerifyAssertion, "--read-only", mysqlmember.Verify{Assertions: []mysqlmember.Assertion{
		{Database: "shop", SQL: "delete from ledger"},
	}})
	fails("slow", members.VerifySlow, "maxRestoreTime, 1s", mysqlmember.Verify{MaxRestoreSeconds: 1})

	logs := s.keys(t, "/log/", ".zst")
	back := s.change(t, logs[len(logs)-1], nil)
	fails("lost", members.VerifyArchive, "is lost", mysqlmember.Verify{})
	back()
	indexes := s.keys(t, "/log/", "/index/")
	back = s.change(t, indexes[len(indexes)-1], func(raw []byte) []byte {
		var listed []json.RawMessage
		if err := json.Unmarshal(raw, &listed); err != nil || len(listed) == 0 {
			t.Fatalf("cannot read %s: %v", raw, err)
		}
		raw, err := json.Marshal(listed[:len(listed)-1])
		if err != nil {
			t.Fatal(err)
		}
		return raw
	})
	fails("tail", members.VerifyArchive, "has it no more", mysqlmember.Verify{})
	back()
	var packs []func()
	for _, key := range s.keys(t, "/copy/", "/data/") {
		packs = append(packs, s.change(t, key, func(raw []byte) []byte { raw[len(raw)/2] ^= 1; return raw }))
	}
	fails("chunk", members.VerifyRestore, "damaged", mysqlmember.Verify{})
	for _, back := range packs {
		back()
	}
	// A copy of a member whose disk lost a page.
	t.Setenv("PATH", filepath.Join(c.root, "usr/bin")+":"+os.Getenv("PATH"))
	all, err := c.repository().Backups(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("there are the backups %v, %v", all, err)
	}
	data := filepath.Join(t.TempDir(), "data")
	if err := c.repository().Load(t.Context(), taken.Label, data); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(data, "shop", "ledger.ibd")
	if raw, err := os.ReadFile(file); err != nil {
		t.Fatal(err)
	} else {
		for page := 3; page < len(raw)/16384; page++ {
			for i := range 64 {
				raw[page*16384+200+i] ^= 0xff
			}
		}
		if err := os.WriteFile(file, raw, fs.FileMode(0o600)); err != nil {
			t.Fatal(err)
		}
	}
	b := all[0]
	b.Ended = time.Now().UTC()
	if b, err = c.repository().Save(t.Context(), data, b); err != nil {
		t.Fatal(err)
	}
	for _, key := range s.keys(t, "/log/") {
		s.change(t, key, nil)
	}
	taken.Label = b.Label
	fails("page", members.VerifyData, "damaged", mysqlmember.Verify{})
}
