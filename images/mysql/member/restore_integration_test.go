// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/outcome"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/binlog"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/test/container"
)

// job runs the program in a pod of its own, beside those of members, until it ends or has said a word, after which it is killed. It returns what
// it said, and what is on its volume.
func (c *cluster) job(killedAt string, args ...string) (said string, left []string) {
	c.t.Helper()
	name := args[0]
	volume, scratch := c.folder(fmt.Sprintf("volume-%s-%d", name, time.Now().UnixNano())), c.folder(fmt.Sprintf("scratch-%s-%d", name, time.Now().UnixNano()))
	if err := errors.Join(os.Chmod(volume, 0o770), os.Chown(volume, container.User, container.User)); err != nil {
		c.t.Fatal(err)
	}
	cert, key, err := c.ca.Issue(mysqlmember.BackupCommonName, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("client/tls.key", key)
	c.file("client/tls.crt", cert)
	c.file("client/ca.crt", c.ca.PEM)
	log := filepath.Join(c.logs, "log-"+name)
	_ = os.Remove(log)
	r := container.Spec{
		Run: "mysqld", Root: c.root, Scratch: scratch, Network: c.netns(letterOfJobs), Program: container.Program, Hosts: hostsOf(), DNS: c.dns, Host: name, Args: args,
		Mounts: map[string]string{
			mysqlmember.FolderVolume: volume, mysqlmember.FolderConfig: filepath.Join(c.base, "config"), mysqlmember.FolderMembers: filepath.Join(c.base, "client"),
			mysqlmember.FolderBackup: c.folder("backup"), mysqlmember.FolderBackupKey: c.folder("backup-key"),
		},
	}.Start(c.t, log, nil)
	var raw []byte
	for until := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if raw, err = os.ReadFile(log); err != nil {
			c.t.Fatal(err)
		}
		if time.Now().After(until) || killedAt != "" && strings.Contains(string(raw), killedAt) {
			r.Kill()
		}
		if r.Ended() {
			raw, _ = os.ReadFile(log)
			break
		}
	}
	entries, err := os.ReadDir(volume)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	_ = os.RemoveAll(volume)
	return string(raw), left
}

// letterOfJobs stands for the pods that take and verify backups, as that of a member does.
const letterOfJobs = "p"

// backup as the pod of a CronJob takes it.
func (c *cluster) backup() (outcome.Backup, string) {
	c.t.Helper()
	said, _ := c.job("", "backup")
	var out outcome.Backup
	for line := range strings.SplitSeq(said, "\n") {
		if strings.HasPrefix(line, `{"label"`) {
			_ = json.Unmarshal([]byte(line), &out)
		}
	}
	return out, said
}

// newBackedUp is a cluster whose members archive, and whose pods take and verify backups.
func newBackedUp(t *testing.T, letters ...string) *cluster {
	t.Helper()
	c := newArchivedCluster(t, letters...)
	for _, l := range letters {
		c.config.Backup.Members = append(c.config.Backup.Members, layout.Host(c.identify(l).Name, c.podsHost()))
	}
	c.configure()
	c.network(letterOfJobs)
	c.offer(letterOfJobs, strings.TrimPrefix(c.bucket.Endpoint, "https://"))
	return c
}

// committed are all commits in the closed logs of a leader, once they are archived.
func (c *cluster) committed(letter string) (all []binlog.Transaction) {
	c.t.Helper()
	c.inside(letter, "FLUSH NO_WRITE_TO_BINLOG BINARY LOGS")
	executed := c.executed(letter)
	c.eventually("all is archived", 2*time.Minute, func() bool { return c.archived().Contains(executed) })
	lines := strings.Split(c.inside(letter, "SHOW BINARY LOGS"), "\n")
	for _, line := range lines[:len(lines)-1] {
		file, _, _ := strings.Cut(line, "\t")
		if err := binlog.Each(filepath.Join(c.base, "data-"+letter, "mysql", file), func(one binlog.Transaction) bool {
			all = append(all, one)
			return true
		}); err != nil {
			c.t.Fatal(err)
		}
	}
	return all
}

// from makes a cluster of one generation later that begins with what another one archived.
func (c *cluster) from(t *testing.T, s mysqlmember.Source, letters ...string) *cluster {
	t.Helper()
	s.Path, s.Encrypted = c.config.Backup.Path, true
	n := newCluster(t, letters...)
	n.config.Generation, n.config.From = 2, &s
	n.shared()
	for folder, to := range map[string]string{"backup": "source", "backup-key": "source-key"} {
		if err := os.CopyFS(n.folder(to), os.DirFS(c.folder(folder))); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range letters {
		n.offer(l, strings.TrimPrefix(c.bucket.Endpoint, "https://"))
	}
	for _, l := range letters {
		n.start(l)
	}
	return n
}

// ids of the ledger that a consumer of the source reads, as their logins stay.
func (c *cluster) ids(letter string) []int {
	c.t.Helper()
	conn := c.connect(letter, consumer, "shop")
	defer func() { _ = conn.Close() }()
	rows, err := conn.QueryContext(c.t.Context(), "SELECT id FROM ledger ORDER BY id")
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var out []int
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			c.t.Fatal(err)
		}
		out = append(out, id)
	}
	if err := rows.Err(); err != nil {
		c.t.Fatal(err)
	}
	return out
}

// TestRestore: what was committed up to a moment is restored, exactly, and nothing later.
func TestRestore(t *testing.T) {
	c := newBackedUp(t, "a", "b")
	begin(t, c, "a", "b")
	w := c.write()
	w.goesOn(20 * time.Second)
	w.reset()
	taken, said := c.backup()
	if taken.Label == "" {
		t.Fatalf("no backup: %s", said)
	}
	gap, _ := w.reset()
	t.Logf("backup %+v, and writes waited for %s meanwhile", taken, gap)
	if follower := c.followers()[0]; !strings.Contains(said, `"member":"`+database+"-"+follower+`"`) {
		t.Errorf("it did not copy %s: %s", follower, said)
	}
	w.goesOn(20 * time.Second)
	w.stop()
	w.all.Wait()
	leader := c.leader()
	conn := c.connect(leader, consumer, "shop")
	exec := func(statement string) {
		t.Helper()
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	for id := range 5 {
		exec(fmt.Sprintf("INSERT INTO ledger (id) VALUES (%d)", 1_000_001+id))
	}
	exec("CREATE TABLE gone (id INT PRIMARY KEY)")
	exec("INSERT INTO gone VALUES (1), (2)")
	exec("DROP TABLE gone")
	exec("INSERT INTO ledger (id) VALUES (2000000)")
	_ = conn.Close()
	all := c.committed(leader)
	want := c.ids(leader)
	// The last commits are five rows, a table, its rows, its end, and a row.
	last := all[len(all)-9:]
	t.Logf("%d commits; two of them within %s", len(all), last[3].Committed.Sub(last[2].Committed))

	t.Run("Latest", func(t *testing.T) {
		n := c.from(t, mysqlmember.Source{}, "a", "b")
		// Whichever begins is killed halfway.
		begins := ""
		n.eventually("one of them restores", 2*time.Minute, func() bool {
			for _, l := range n.letters {
				raw, _ := os.ReadFile(filepath.Join(n.logs, "log-"+l))
				if strings.Contains(string(raw), "loaded the backup") {
					begins = l
				}
			}
			return begins != ""
		})
		n.running(begins).Kill()
		n.start(begins)
		t.Logf("ready after %s", n.eventually("the copy serves", 3*time.Minute, func() bool { return n.ready("a", "b") }))
		for _, l := range []string{"a", "b"} {
			if got := n.ids(l); !slices.Equal(got, want) {
				t.Errorf("%s has %d rows, want %d", l, len(got), len(want))
			}
		}
		if group := n.inside("a", "SELECT @@group_replication_group_name"); group != n.identify("a").GroupName(2) {
			t.Errorf("the group has the name %s", group)
		}
		n.eventually("the platform can log in, and writes", 30*time.Second, func() bool {
			conn := n.connect(n.leader(), mysqlmember.AccountAccess, "")
			defer func() { _ = conn.Close() }()
			_, err := conn.ExecContext(t.Context(), "CREATE DATABASE IF NOT EXISTS another")
			return err == nil
		})
		// It is restored once: a start later has what was written since.
		n.running("a").Terminate(true)
		n.start("a")
		n.eventually("it serves again", 3*time.Minute, func() bool { return n.ready("a", "b") })
		if got := n.inside("a", "SHOW DATABASES LIKE 'another'"); got != "another" {
			t.Errorf("what was written after the restore is gone: %q", got)
		}
	})
	for name, tc := range map[string]struct {
		at   time.Time
		rows int
		gone bool
	}{
		"BetweenTwoRows": {last[2].Committed, len(want) - 3, false},
		"JustBefore":     {last[2].Committed.Add(-time.Microsecond), len(want) - 4, false},
		"BeforeTheDrop":  {last[7].Committed.Add(-time.Microsecond), len(want) - 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := c.from(t, mysqlmember.Source{At: &tc.at}, "a")
			n.eventually("the copy serves", 3*time.Minute, func() bool { return n.ready("a") })
			if got := n.ids("a"); !slices.Equal(got, want[:tc.rows]) {
				t.Errorf("it has %d rows, want %d", len(got), tc.rows)
			}
			if there := n.inside("a", "SHOW TABLES IN shop LIKE 'gone'") == "gone"; there != tc.gone {
				t.Errorf("the table is there: %t", there)
			}
		})
	}
	t.Run("Refused", func(t *testing.T) {
		n := c.from(t, mysqlmember.Source{At: new(last[8].Committed.Add(time.Second))}, "a")
		refused := func(want string) {
			t.Helper()
			n.eventually("it says why it cannot restore", 2*time.Minute, func() bool {
				_, r, _ := n.status("a")
				return r.Reason == members.ReasonRestoreFailed && strings.Contains(r.Message, want)
			})
			if n.annotations(members.SuffixConfig)[members.AnnotationInitialize] != "" {
				t.Error("it began all the same")
			}
		}
		refused("ends with what was committed at " + last[8].Committed.Format(time.RFC3339Nano))
		n.config.From.At = &taken.Began
		n.shared()
		refused("the first time that can be restored is")
		n.config.From.Encrypted = false
		n.shared()
		refused("is encrypted, and no key is given")
		n.config.From.Encrypted = true
		// What is possible is restored without further ado.
		n.config.From.At = &last[8].Committed
		n.shared()
		n.eventually("the copy serves", 3*time.Minute, func() bool { return n.ready("a") })
		if got := n.ids("a"); !slices.Equal(got, want) {
			t.Errorf("it has %d rows, want %d", len(got), len(want))
		}
		if _, r, _ := n.status("a"); r.Reason != "" {
			t.Errorf("it still reports %v", r)
		}
	})
}
