// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/postmaster"
)

// answerLimit is how long a server gets to answer after its start.
const answerLimit = 30 * time.Second

// A Job is one upgrade: From a major version To another.
type Job struct {
	From, To string
	// standby is the server of the copy, while it runs, and source the address that it follows.
	standby *process.Child
	source  string
}

// program of PostgreSQL, in the version of the copy or of what becomes of it.
func (j *Job) before(name string) string { return filepath.Join(pgmember.Programs(j.From), name) }
func (j *Job) after(name string) string  { return filepath.Join(pgmember.Programs(j.To), name) }

// run a program to its end. The error has what it said last.
func run(ctx context.Context, program string, args ...string) error {
	said, err := process.Run(ctx, layout.UpgradeWork, program, args...)
	if err != nil {
		return fmt.Errorf("%w: %s", err, process.Tail(said, maxFindings))
	}
	return nil
}

// A Leader is where the copy gets its data: a pod by the name in its certificate, and by its address, so that it needs no DNS.
type Leader struct{ Host, Address string }

// conninfo of a leader. Other pods have certificates of the same authority, so the name is checked as well.
func conninfo(l Leader) string {
	return fmt.Sprintf("host=%s hostaddr=%s port=%d user=%s dbname=replication application_name=%s sslmode=verify-full sslcert=%s sslkey=%s sslrootcert=%s "+
		"connect_timeout=5 tcp_user_timeout=10000 keepalives_idle=10 keepalives_interval=5 keepalives_count=3", l.Host, l.Address, pgmember.PortPostgres, pgmember.RoleReplication, members.FollowerSlot,
		filepath.Join(pgmember.FolderTLS, "members.crt"), filepath.Join(pgmember.FolderTLS, "members.key"), filepath.Join(pgmember.FolderTLS, "server-ca.crt"))
}

// Copy the data of a leader, in place of what an earlier try left.
func (j *Job) Copy(ctx context.Context, leader Leader) error {
	j.Stop()
	j.source = ""
	if err := Discard(); err != nil {
		return err
	}
	if err := durable.Folders(layout.UpgradeWork); err != nil {
		return err
	}
	err := run(ctx, j.before("pg_basebackup"), "--dbname="+conninfo(leader), "--pgdata="+layout.UpgradeCopy,
		"--wal-method=stream", "--slot="+members.FollowerSlot, "--checkpoint=fast", "--no-password")
	if err != nil {
		return fmt.Errorf("cannot copy the data: %w", err)
	}
	if err := os.WriteFile(filepath.Join(layout.UpgradeCopy, "standby.signal"), nil, 0o600); err != nil {
		return fmt.Errorf("cannot make the copy a standby: %w", err)
	}
	return nil
}

// settings of the copy's server. They override the settings of the leader that were copied: only this program reaches it, it
// archives nothing, and waits for no standby.
func (j *Job) settings(control Control, source string) string {
	lines := slices.Grow([]string{
		"listen_addresses = ''", "unix_socket_directories = '" + layout.UpgradeWork + "'", "unix_socket_permissions = 0700", "port = 5432",
		// Patroni names files by where the data was.
		"hba_file = '" + filepath.Join(layout.UpgradeCopy, "pg_hba.conf") + "'", "ident_file = '" + filepath.Join(layout.UpgradeCopy, "pg_ident.conf") + "'",
		"ssl = off", "archive_mode = off", "restore_command = ''", "synchronous_standby_names = ''", "logging_collector = off",
		"hot_standby = on", "recovery_target_timeline = latest", "max_standby_streaming_delay = -1", "hot_standby_feedback = off",
		"primary_slot_name = '" + members.FollowerSlot + "'", "primary_conninfo = '" + source + "'",
	}, len(control.Settings))
	// What a standby has must not be less than what the leader has.
	for _, name := range slices.Sorted(maps.Keys(control.Settings)) {
		lines = append(lines, name+" = "+control.Settings[name])
	}
	return strings.Join(lines, "\n") + "\n"
}

// hugePages in what Patroni writes of a server that has its buffers in them.
var hugePages = regexp.MustCompile(`(?m)^huge_pages = '?on'?$`)

// ordinaryMemory are settings of the copy's server, which has no huge pages although the leader may have them, by the file that was copied.
func ordinaryMemory(file string) ([]string, error) {
	lines := []string{"huge_pages = off"}
	copied, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the settings of the copy: %w", err)
	}
	if hugePages.Match(copied) {
		lines = append(lines, "shared_buffers = 128MB")
	}
	return lines, nil
}

// Follow a leader, or without one the leader it followed before. It returns when the copy's server answers.
func (j *Job) Follow(ctx context.Context, leader Leader) error {
	running := j.running()
	source := conninfo(leader)
	if leader.Address != "" && (source != j.source || !running) {
		control, err := j.Control(ctx)
		if err != nil {
			return err
		}
		pages, err := ordinaryMemory(filepath.Join(layout.UpgradeCopy, "postgresql.conf"))
		if err != nil {
			return err
		}
		settings := j.settings(control, source) + strings.Join(pages, "\n") + "\n"
		if err := os.WriteFile(filepath.Join(layout.UpgradeCopy, "postgresql.auto.conf"), []byte(settings), 0o600); err != nil {
			return fmt.Errorf("cannot set the leader that the copy follows: %w", err)
		}
		j.source = source
		if running {
			return j.standby.Signal(syscall.SIGHUP)
		}
	}
	if running {
		return nil
	}
	if err := unlock(); err != nil {
		return err
	}
	var err error
	if j.standby, err = process.Start(j.before("postgres"), nil, "-D", layout.UpgradeCopy); err != nil {
		return err
	}
	return j.answers(ctx, j.standby, 5432)
}

// unlock the copy when nothing uses it. The number in the files that a killed server left may be another program's by now, and
// PostgreSQL would not start beside that.
func unlock() error {
	if _, running := postmaster.Find(layout.UpgradeCopy); running {
		return errors.New("another server runs on the copy")
	}
	for _, file := range []string{filepath.Join(layout.UpgradeCopy, "postmaster.pid"), filepath.Join(layout.UpgradeWork, ".s.PGSQL.5432.lock")} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove what a killed server left: %w", err)
		}
	}
	return nil
}

// running reports whether the copy's server runs.
func (j *Job) running() bool {
	if j.standby != nil && j.standby.Ended() {
		j.standby = nil
	}
	return j.standby != nil
}

// answers waits until a server does that was just started.
func (j *Job) answers(ctx context.Context, server *process.Child, port uint16) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	for {
		conn, err := connect(ctx, port)
		if err == nil {
			return conn.Close(ctx)
		}
		if server.Within(50 * time.Millisecond) {
			return errors.New("PostgreSQL ends when it starts: see the log of the pod")
		}
		if ctx.Err() != nil {
			return fmt.Errorf("PostgreSQL does not answer: %w", err)
		}
	}
}

// Stop the copy's server cleanly, if it runs.
func (j *Job) Stop() {
	if j != nil && j.running() {
		stop(j.standby)
		j.standby = nil
	}
}

// stop a server at once but cleanly. One that does not is killed, which loses nothing that was promised to anybody.
func stop(server *process.Child) { server.Stop(syscall.SIGINT, time.Minute) }

// Replays is which segment of the write-ahead log the copy replays, as in "000000010000000000000007"; nothing when that is not
// known. Later ones sort later. A server answers no client before the copy is consistent, which may take as long as the copy took.
func (j *Job) Replays() string {
	if !j.running() {
		return ""
	}
	for _, p := range process.Children(j.standby.PID()) {
		if s := replays(process.Title(p.PID)); s != "" {
			return s
		}
	}
	return ""
}

// replays understands the title of a process of PostgreSQL.
func replays(title string) string {
	_, does, _ := strings.Cut(title, "startup ")
	if _, segment, ok := strings.Cut(does, "recovering "); ok {
		return segment
	}
	return ""
}

// Streams reports whether the copy gets what the leader writes.
func (j *Job) Streams(ctx context.Context) (bool, error) {
	var streams bool
	// One that has less than the leader of something pauses instead of falling behind in silence.
	err := ask(ctx, `select exists (select from pg_stat_wal_receiver where status = 'streaming') and pg_get_wal_replay_pause_state() = 'not paused'`, nil, &streams)
	if err != nil {
		return false, fmt.Errorf("cannot ask the copy how far it is: %w", err)
	}
	return streams, nil
}

// Has reports whether the copy has replayed the write-ahead log up to a position.
func (j *Job) Has(ctx context.Context, position string) (bool, error) {
	var has bool
	if err := ask(ctx, "select coalesce(pg_last_wal_replay_lsn() > $1::pg_lsn, false)", []any{position}, &has); err != nil {
		return false, fmt.Errorf("cannot ask the copy how far it is: %w", err)
	}
	return has, nil
}

// ask the copy's server for the only row of a query.
func ask(ctx context.Context, query string, args []any, into ...any) error {
	_, err := managed.Ask(ctx, layout.UpgradeWork, 5432, query, args, into...)
	return err
}

// connect to a server of this package as superuser.
func connect(ctx context.Context, port uint16) (*pgx.Conn, error) {
	return managed.Connect(ctx, layout.UpgradeWork, port, pgmember.RoleSuperuser)
}
