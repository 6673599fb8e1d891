// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/process"
)

// secret files of a bucket that works.
func secret() map[string]string {
	return map[string]string{
		"endpoint": "https://s3.example.org:9000\n", "region": "eu-1", "bucket": "demo-orders-backup", "accessKeyId": "id", "secretAccessKey": "key",
	}
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadRepository(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(map[string]string)
		want   Repository
		err    string
	}{
		"Complete": {
			"Everything in it is taken.", func(map[string]string) {},
			Repository{Host: "s3.example.org", Port: "9000", Region: "eu-1", Bucket: "demo-orders-backup", Key: "id", Secret: "key"},
			"",
		},
		"Token": {
			"Keys for a while come with a token.", func(m map[string]string) { m["sessionToken"] = "token" },
			Repository{Host: "s3.example.org", Port: "9000", Region: "eu-1", Bucket: "demo-orders-backup", Key: "id", Secret: "key", Token: "token"},
			"",
		},
		"StandardPort": {
			"Without a port it is that of HTTPS.", func(m map[string]string) { m["endpoint"] = "https://s3.example.org/" },
			Repository{Host: "s3.example.org", Port: "443", Region: "eu-1", Bucket: "demo-orders-backup", Key: "id", Secret: "key"},
			"",
		},
		"IPv6": {
			"An address of version 6 has colons of its own.", func(m map[string]string) { m["endpoint"] = "https://[2001:db8::1]" },
			Repository{Host: "2001:db8::1", Port: "443", Region: "eu-1", Bucket: "demo-orders-backup", Key: "id", Secret: "key"},
			"",
		},
		"Nothing":  {"A Secret that is not there is mounted as nothing.", func(m map[string]string) { clear(m) }, Repository{}, "is not there"},
		"NoKey":    {"Not every config gives keys to those who use buckets.", func(m map[string]string) { delete(m, "accessKeyId") }, Repository{}, "workloadCredentials"},
		"Plain":    {"pgBackRest speaks HTTPS only.", func(m map[string]string) { m["endpoint"] = "http://s3.example.org" }, Repository{}, "need https://"},
		"Path":     {"A path in the endpoint has no place in the configuration.", func(m map[string]string) { m["endpoint"] = "https://s3.example.org/minio" }, Repository{}, "need https://"},
		"TwoLines": {"A line break would begin another option.", func(m map[string]string) { m["region"] = "eu\nrepo1-path=/" }, Repository{}, "more than one line"},
	} {
		t.Run(name, func(t *testing.T) {
			files := secret()
			tc.change(files)
			got, err := ReadRepository(folder(t, files))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			var n *NotReadyError
			if (err != nil) != (tc.err != "") || (err != nil && (!errors.As(err, &n) || !strings.Contains(err.Error(), tc.err))) {
				t.Errorf("%s: got error %v, want one with %q", tc.reason, err, tc.err)
			}
		})
	}
}

func TestHost(t *testing.T) {
	dir := folder(t, map[string]string{"ca.crt": "authority"})
	r := Repository{Host: "s3.example.org", Port: "443", Region: "eu-1", Bucket: "b", Key: "id", Secret: "key", CA: filepath.Join(dir, "ca.crt")}
	s := pgmember.Backup{Stanza: "orders-3f2a-17", Path: "/demo/orders", Members: []string{"orders-a-0.orders-pods.demo.svc", "orders-b-0.orders-pods.demo.svc"}, RetentionDays: 30}
	text := Host(s, r, Folders{Data: "/data/pgdata", Socket: "/run/postgresql", Lock: "/tmp/lock"}, TLS{Cert: "c", Key: "k", CA: "a"}, "/run/capstan/pgbackrest.conf").String()
	for _, line := range []string{
		"[orders-3f2a-17]", "repo1-path=/demo/orders", "repo1-retention-full-type=time", "repo1-retention-full=30", "backup-standby=prefer",
		"pg1-host=orders-a-0.orders-pods.demo.svc", "pg2-host=orders-b-0.orders-pods.demo.svc", "pg2-host-type=tls", "pg2-host-config=/run/capstan/pgbackrest.conf",
		"repo1-storage-ca-file=" + r.CA,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	if strings.Contains(text, "repo1-s3-token") {
		t.Error("an option without a value is written")
	}
	s.RetentionDays, s.RetentionFull = 0, 14
	if text := Host(s, r, Folders{}, TLS{}, "").String(); !strings.Contains(text, "repo1-retention-full-type=count\nrepo1-retention-full=14\n") {
		t.Errorf("a number of backups is no retention of days:\n%s", text)
	}
}

// TestRole: pgBackRest takes a role of the pod itself, at the STS of the region, and no key is written.
func TestRole(t *testing.T) {
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/shop/backups")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/token")
	r, err := ReadRepository(folder(t, map[string]string{"endpoint": "https://s3.eu-central-1.amazonaws.com", "region": "eu-central-1", "bucket": "b"}))
	if err != nil {
		t.Fatal(err)
	}
	text := Reader("/demo/orders", "", 1, r, Folders{}).String()
	for _, line := range []string{"repo1-s3-key-type=web-id", "repo1-s3-sts-host=sts.eu-central-1.amazonaws.com", "repo1-s3-endpoint=s3.eu-central-1.amazonaws.com"} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	if strings.Contains(text, "repo1-s3-key=") || strings.Contains(text, "repo1-s3-key-secret") {
		t.Errorf("a key is written:\n%s", text)
	}
}

func TestWords(t *testing.T) {
	for name, tc := range map[string]struct{ reason, said, want string }{
		"Error": {
			"The code says nothing to people.", "ERROR: [103]: unable to find a valid repository:\n       repo1: [FileMissingError] raised from s3\n",
			"unable to find a valid repository:; repo1: [FileMissingError] raised from s3",
		},
		"Hint":    {"What helps is told with it.", "ERROR: [055]: unable to load info file\n       HINT: has a stanza-create been performed?", "unable to load info file; has a stanza-create been performed?"},
		"Warning": {"A warning before may be the cause.", "WARN: unable to check pg1: connection refused\nERROR: [056]: unable to find primary cluster", "unable to find primary cluster; unable to check pg1: connection refused"},
		"Passing": {
			"The same trouble has the same words.", "ERROR: [104]: unable to push WAL file '00000001000000000000000B' to s3; [HostConnectError] on 2 retries from 8667-29289ms: refused",
			"unable to push WAL file to s3; [HostConnectError]: refused",
		},
		"Refused": {
			"An answer has a number and a time of its own, and its code says most.", "ERROR: [102]: unable to load info file:\n" +
				"       ProtocolError: HTTP request failed with 403 (Forbidden):\n       *** Path/Query ***:\n       GET /b?list-type=2\n       *** Response Headers ***:\n" +
				"       x-amz-request-id: 17\n       *** Response Content ***:\n       <Error><Code>AccessDenied</Code><RequestId>17</RequestId></Error>\n" +
				"       HINT: has a stanza-create been performed?\n",
			"unable to load info file:; ProtocolError: HTTP request failed with 403 (Forbidden): AccessDenied; has a stanza-create been performed?",
		},
		"Untrusted": {
			"Which of the two refuses is told.", "[ProtocolError] HTTP request failed with 403 (Forbidden):\n*** Path/Query ***:\nGET /?Action=AssumeRoleWithWebIdentity&RoleArn=a\n" +
				"*** Response Content ***:\n<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>",
			"[ProtocolError] HTTP request failed with 403 (Forbidden): AccessDenied, by the STS: see the trust policy of the role",
		},
		"Nothing": {"Silence is no words.", "\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, words(tc.said)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if n := len(words("ERROR: [001]: " + strings.Repeat("ü", 4096))); n > maxSaid+8 {
		t.Errorf("%d bytes of words", n)
	}
}

// program that stands in for pgBackRest.
func program(t *testing.T, script string) Runner {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pgbackrest")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return Runner{Program: file, Config: "/none"}
}

func TestInfo(t *testing.T) {
	const two = `cat <<'E'
[{"name":"a","status":{"code":0,"message":"ok"},"backup":[
 {"label":"2","type":"incr","timestamp":{"start":200,"stop":210},"info":{"size":5,"repository":{"delta":1}}},
 {"label":"1","type":"full","timestamp":{"start":100,"stop":110},"info":{"size":4,"repository":{"delta":4}}}]},
 {"name":"b","status":{"code":2,"message":"no valid backups"},"backup":[]}]
E
`
	all, err := program(t, two).Info(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	if got := Latest(all); got.Name != "a" || got.Backups[1].Label != "2" || !got.Backups[0].Ended().Equal(time.Unix(110, 0)) {
		t.Errorf("the latest is %+v", got)
	}
	if _, err := program(t, "echo 'ERROR: [039]: no connection' >&2; exit 39").Info(context.Background(), "a"); err == nil || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("a failure is told as %v", err)
	}
	if _, err := program(t, `echo '[{"name":"a","status":{"code":99,"message":"other"}}]'`).Info(context.Background(), "a"); err == nil {
		t.Error("a stanza that cannot be read has no backups")
	}
	if got := Latest(nil); got.Name != "" {
		t.Errorf("the latest of none is %+v", got)
	}
}

// TestRunBesideReaper: how pgBackRest ended is known also in a program that buries orphans, as the first one of a container does.
func TestRunBesideReaper(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var reapers, runs sync.WaitGroup
	for range 4 {
		reapers.Go(func() {
			process.Reap(ctx, func(pid int) { t.Errorf("process %d is taken for an orphan", pid) })
		})
	}
	fails := program(t, "exit 39")
	for range 8 {
		runs.Go(func() {
			for range 40 {
				_, err := fails.Run(ctx, "info")
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != 39 {
					t.Errorf("a program that ends with 39 is told as %v", err)
				}
			}
		})
	}
	runs.Wait()
	stop()
	reapers.Wait()
}

func TestArchived(t *testing.T) {
	file := filepath.Join(t.TempDir(), "archive.json")
	got, err := ReadArchived(file)
	if diff := cmp.Diff(Archived{}, got); diff != "" || err != nil {
		t.Errorf("before the first: %v, -want, +got:\n%s", err, diff)
	}
	at := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	want := Archived{Failing: &at, Message: "no connection", Dropped: &at}
	if err := want.Write(file); err != nil {
		t.Fatal(err)
	}
	if got, err = ReadArchived(file); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestBacklog(t *testing.T) {
	data := t.TempDir()
	dir := filepath.Join(data, "pg_wal", "archive_status")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"000000010000000000000003.ready", "000000010000000000000004.ready", "000000010000000000000002.done", "00000002.history.ready"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Backlog(data); err != nil || got != 2*SegmentSize {
		t.Errorf("%d bytes wait (%v), want two segments", got, err)
	}
	if _, err := Backlog(filepath.Join(data, "none")); err == nil {
		t.Error("without a folder nothing waits")
	}
}

// TestProcesses that each command runs: as many as the plan has CPUs, and what there was before for files that do not say.
func TestProcesses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                 string
		processes              int64
		archive, take, restore string
	}{
		"OldFile": {"A file of an earlier function does not say.", 0, "2", "1", "2"},
		"Four":    {"All that read or write the repository work in parallel.", 4, "4", "4", "4"},
	} {
		t.Run(name, func(t *testing.T) {
			s := pgmember.Backup{Stanza: "orders-17", Path: "/demo/orders", Processes: tc.processes}
			for who, text := range map[string][2]string{
				"archives": {Member(s, Repository{}, Folders{}, TLS{}).String(), "[global:archive-push]\nprocess-max=" + tc.archive + "\n"},
				"backs up": {Host(s, Repository{}, Folders{}, TLS{}, "").String(), "\nprocess-max=" + tc.take + "\n"},
				"restores": {Reader("/demo/orders", "orders-17", tc.processes, Repository{}, Folders{Spool: "/tmp/spool"}).String(), "\nprocess-max=" + tc.restore + "\n"},
				"replays":  {Reader("/demo/orders", "orders-17", tc.processes, Repository{}, Folders{Spool: "/tmp/spool"}).String(), "[global:archive-get]\narchive-async=y\n"},
			} {
				if !strings.Contains(text[0], text[1]) {
					t.Errorf("%s: who %s has no %q in\n%s", tc.reason, who, text[1], text[0])
				}
			}
		})
	}
	if text := Reader("/demo/orders", "orders-17", 4, Repository{}, Folders{}).String(); strings.Contains(text, "archive-async") {
		t.Errorf("without a folder for it, the archive is fetched ahead:\n%s", text)
	}
}

// TestFetch tells PostgreSQL the end of the archive from an archive that does not answer: with more than 125 it ends, and begins with less than
// there is in no case.
func TestFetch(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		says, got int
	}{
		"Fetched": {"The file is there.", 0, 0},
		"None":    {"The archive does not have it.", 1, 1},
		"Down":    {"The archive does not answer.", 49, 255},
		"Killed":  {"The program was killed.", 137, 255},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "pgbackrest")
			said := program + ".said"
			script := fmt.Sprintf("#!/bin/sh\necho \"$@\" > %s\nexit %d\n", said, tc.says)
			if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			command := Runner{Program: program, Config: "/run/x.conf"}.Fetch("orders-17")
			// As PostgreSQL does.
			command = strings.NewReplacer("%f", "000000010000000000000003", "%p", "pg_wal/RECOVERYXLOG").Replace(command)
			err := exec.Command("sh", "-c", command).Run()
			got := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				got = exit.ExitCode()
			}
			if got != tc.got {
				t.Errorf("\n%s\nwant %d, got %d", tc.reason, tc.got, got)
			}
			raw, err := os.ReadFile(said)
			if diff := cmp.Diff("--config=/run/x.conf --stanza=orders-17 archive-get 000000010000000000000003 pg_wal/RECOVERYXLOG\n", string(raw)); diff != "" || err != nil {
				t.Errorf("the command: -want, +got:\n%s%v", diff, err)
			}
		})
	}
}
