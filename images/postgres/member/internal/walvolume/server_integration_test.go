// SPDX-License-Identifier: Apache-2.0

//go:build integration

package walvolume

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/test/container"
)

// user that PostgreSQL runs as.
const user = 999

// A server is a PostgreSQL of the image, which listens on a socket only. Its files have the same names for it as for the test.
type server struct {
	t     *testing.T
	root  string
	place Place
}

// newServer with new data, on two folders.
func newServer(t *testing.T) *server {
	t.Helper()
	root := container.Root(t, "postgres")
	base, err := os.MkdirTemp("/tmp", "wal-") //nolint:usetesting // The path of a socket is short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	s := &server{t: t, root: root, place: Place{Data: filepath.Join(base, "data", "pgdata"), Volume: filepath.Join(base, "wal"), Measure: func(string) (volume.Usage, error) {
		return volume.Usage{Size: 1 << 30, Free: 1 << 29}, nil // the disk of a machine that tests may be full
	}}}
	if err := errors.Join(os.MkdirAll(filepath.Dir(s.place.Data), 0o700), os.Mkdir(s.place.Volume, 0o700)); err != nil {
		t.Fatal(err)
	}
	s.own()
	s.must("initdb -D " + s.place.Data + " -U postgres -k --auth=trust --no-sync")
	t.Cleanup(s.kill)
	return s
}

// own all files, as a volume's group lets members do.
func (s *server) own() {
	s.t.Helper()
	base := filepath.Dir(s.place.Volume)
	if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%[1]d", user), base).CombinedOutput(); err != nil { //nolint:noctx // It is quick.
		s.t.Fatalf("%v: %s", err, out)
	}
}

// run a script with the programs of the image, in its root file system with the test's files.
func (s *server) run(script string) (string, error) {
	inside := "PATH=/usr/lib/postgresql/17/bin:/usr/bin:/bin LC_ALL=C.UTF-8; export PATH LC_ALL; cd /tmp; " + script
	cmd := exec.Command("unshare", "--mount", "sh", "-ec", //nolint:noctx // A cleanup runs it, too.
		`mount --bind /tmp "$0/tmp"; mount --bind /dev "$0/dev"; exec chroot --userspec=`+strconv.Itoa(user)+`:`+strconv.Itoa(user)+` "$0" /bin/sh -c "$1"`, s.root, inside)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (s *server) must(script string) string {
	s.t.Helper()
	out, err := s.run(script)
	if err != nil {
		s.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return out
}

func (s *server) socket() string { return filepath.Dir(s.place.Volume) }

// start the server, which recovers what it was killed with.
func (s *server) start() {
	s.t.Helper()
	s.own()
	s.must(fmt.Sprintf("pg_ctl -D %s -w -t 60 -l %[1]s.log -o \"-c listen_addresses='' -k %s -c jit=off -c max_wal_size=4GB -c wal_keep_size=512MB\" start >/dev/null || { tail -20 %[1]s.log; exit 1; }",
		s.place.Data, s.socket()))
}

func (s *server) query(q string) string {
	s.t.Helper()
	return s.must(fmt.Sprintf("psql -h %s -U postgres -AtXc \"%s\" postgres", s.socket(), q))
}

// kill the server and all of its processes.
func (s *server) kill() {
	raw, err := os.ReadFile(filepath.Join(s.place.Data, "postmaster.pid"))
	if err != nil {
		return
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && syscall.Kill(pid, 0) == nil; time.Sleep(50 * time.Millisecond) {
	}
	time.Sleep(500 * time.Millisecond) // its processes notice that it is gone
	_ = os.Remove(filepath.Join(s.place.Data, "postmaster.pid"))
	locks, _ := filepath.Glob(filepath.Join(s.socket(), ".s.PGSQL*"))
	for _, l := range locks {
		_ = os.Remove(l)
	}
}

// TestServerStartsAfterEachPoint: a PostgreSQL that was killed, and so needs its log to recover, starts with all that it has acknowledged
// wherever a move was interrupted: in a pod with the volume after the move was completed, and in one without it.
func TestServerStartsAfterEachPoint(t *testing.T) {
	s := newServer(t)
	p := s.place
	if err := volume.Claim(p.mark(), p.Log(), identity, "17"); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.query("create table kept (id int); checkpoint")
	rows := 0
	for done, all := 0, p.steps(t.Context()); done <= len(all); done++ {
		for _, withVolume := range []bool{false, true} {
			// Nothing of this is in the tables yet: only the log has it.
			s.query(fmt.Sprintf("insert into kept select g from generate_series(%d, %d) g", rows+1, rows+2000))
			rows += 2000
			s.kill()
			s.back()
			for _, step := range all[:done] {
				if err := step.do(); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
			}
			next := p
			linked, _ := p.linked()
			if !withVolume && !linked {
				next.Volume = filepath.Join(t.TempDir(), "none")
			}
			if err := next.Prepare(t.Context(), identity, "17"); err != nil {
				t.Fatalf("after %d steps: %v", done, err)
			}
			s.start()
			if got := s.query("select count(*) from kept"); got != strconv.Itoa(rows) {
				t.Errorf("after %d steps, with the volume %t: want %d rows, got %s", done, withVolume, rows, got)
			}
		}
	}
	if apart, _ := p.Apart(); !apart {
		t.Error("the log is not on its volume in the end")
	}
}

// back to a log beside the data.
func (s *server) back() {
	s.t.Helper()
	p := s.place
	if linked, _ := p.linked(); !linked {
		return
	}
	if err := errors.Join(os.Remove(p.inData()), os.Rename(p.Log(), p.inData())); err != nil {
		s.t.Fatal(err)
	}
}

// TestServerNeedsItsLog proves that the test above can fail: without the log that a killed server had, rows are lost or it does not start.
func TestServerNeedsItsLog(t *testing.T) {
	s := newServer(t)
	s.start()
	s.query("create table kept (id int); checkpoint; insert into kept select generate_series(1, 2000)")
	s.kill()
	if err := os.RemoveAll(s.place.inData()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(s.place.Log(), 0o700), os.Symlink(s.place.Log(), s.place.inData())); err != nil {
		t.Fatal(err)
	}
	s.own()
	if out, err := s.run(fmt.Sprintf("pg_ctl -D %s -w -t 20 -l %[1]s.log -o \"-c listen_addresses='' -k %s\" start", s.place.Data, s.socket())); err == nil {
		t.Errorf("it starts with an empty log: %s", out)
	}
}

// TestCopyHasItsLogApart: what Patroni runs for a new standby, and pg_rewind, put the log on the volume or leave it there.
func TestCopyHasItsLogApart(t *testing.T) {
	s := newServer(t)
	s.start()
	s.query("create table kept (id int)")
	s.must(fmt.Sprintf("pg_basebackup -h %s -U postgres -X stream --checkpoint=fast --pgdata=%s.copy --waldir=%s", s.socket(), s.place.Data, s.place.Log()))
	copied := s.place
	copied.Data += ".copy"
	if apart, err := copied.Apart(); !apart || err != nil {
		t.Fatalf("the copy has its log beside the data: %v", err)
	}
	if err := volume.Claim(s.place.mark(), filepath.Join(s.place.Volume, "none"), identity, "17"); err != nil {
		t.Fatal(err)
	}
	if err := copied.Prepare(t.Context(), identity, "17"); err != nil {
		t.Errorf("a copy needs no move: %v", err)
	}
	// The copy becomes a leader of its own, and then follows again.
	other := &server{t: t, root: s.root, place: copied}
	if err := os.WriteFile(filepath.Join(copied.Data, "standby.signal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other.own()
	apartSocket := filepath.Join(s.socket(), "wal")
	other.must(fmt.Sprintf("pg_ctl -D %s -w -t 60 -l %[1]s.log -o \"-c listen_addresses='' -k %s -c jit=off -c wal_log_hints=on -c wal_keep_size=512MB -c primary_conninfo='host=%s user=postgres'\" start >/dev/null",
		copied.Data, apartSocket, s.socket()))
	t.Cleanup(other.kill)
	// pg_rewind needs the log of the target from the last common checkpoint on.
	s.query("insert into kept values (0); checkpoint; select pg_switch_wal()")
	other.must(fmt.Sprintf("for i in $(seq 100); do psql -h %s -U postgres -AtXc 'select count(*) from kept' postgres | grep -q 1 && break; sleep 0.2; done; psql -h %[1]s -U postgres -AtXc checkpoint postgres", apartSocket))
	other.must(fmt.Sprintf("pg_ctl -D %s -w promote >/dev/null", copied.Data))
	other.must(fmt.Sprintf("psql -h %s -U postgres -AtXc \"insert into kept values (1); checkpoint\" postgres && pg_ctl -D %s -m fast -w stop", apartSocket, copied.Data))
	s.query("insert into kept values (2); select pg_switch_wal(); checkpoint")
	out, err := s.run(fmt.Sprintf("pg_rewind --target-pgdata=%s --source-server='host=%s user=postgres dbname=postgres'", copied.Data, s.socket()))
	if err != nil || strings.Contains(out, "no rewind required") {
		t.Errorf("pg_rewind does not rewind: %v: %s", err, out)
	}
	if apart, err := copied.Apart(); !apart || err != nil {
		t.Errorf("pg_rewind removes the link: %v", err)
	}
}
