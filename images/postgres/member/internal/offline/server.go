// SPDX-License-Identifier: Apache-2.0

// Package offline runs PostgreSQL on restored data where no client reaches it: to verify a backup, and to mask a copy before it is handed
// out.
package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
)

const (
	// lookEvery is how often it is looked whether the server has replayed all.
	lookEvery = 500 * time.Millisecond
	// stopWithin is how long a server may take to stop.
	stopWithin = 10 * time.Minute
	// everyone who opens the socket may log in: nothing else is in the pod.
	everyone = "local all all trust\n" //nolint:dupword // All databases, and all users.
	// cannotConnectNow is what a server says until all is replayed.
	cannotConnectNow = "57P03"
)

// Unusable data: PostgreSQL does not start on it, or the platform cannot log in.
type Unusable struct { //nolint:errname // offline.Unusable says it.
	// Message says why.
	Message string
}

func (u *Unusable) Error() string { return u.Message }

// A Server on what was restored. It is reached only by a socket in Folder.
type Server struct {
	// Programs is the folder of PostgreSQL's programs, and Data the restored data.
	Programs, Data, Folder string
	// Checksums reports that the data has them.
	Checksums bool

	child *process.Child
	said  *tail
}

// Start a server, and wait until it has replayed all that was archived, or as much as was requested. It archives nothing, sends and takes nothing, and runs no
// worker of any extension: what was restored is a copy, and must not act like the one it is of.
func Start(ctx context.Context, programs, data, folder string, preload []string) (*Server, error) {
	s := &Server{Programs: programs, Data: data, Folder: folder, said: &tail{}}
	control, err := pgdata.Control(ctx, programs, data)
	if err != nil {
		return nil, &Unusable{err.Error()}
	}
	s.Checksums = control["Data page checksum version"] != "0"
	hba := filepath.Join(folder, "pg_hba.conf")
	config := filepath.Join(folder, "postgresql.conf")
	if err := errors.Join(os.WriteFile(hba, []byte(everyone), 0o600), os.WriteFile(config, nil, 0o600)); err != nil {
		return nil, fmt.Errorf("cannot configure the server on what was restored: %w", err)
	}
	// Its workers would begin the jobs of the Database.
	preload = slices.DeleteFunc(slices.Clone(preload), func(name string) bool { return name == "pg_cron" })
	args := []string{"-D", data}
	for _, o := range [][2]string{
		{"config_file", config},
		{"hba_file", hba},
		{"listen_addresses", ""},
		{"unix_socket_directories", folder},
		{"port", "5432"},
		{"ssl", "off"},
		{"archive_mode", "off"},
		// A checkpoint removes the segments of the write-ahead log before it.
		{"wal_recycle", "off"},
		{"wal_keep_size", "0"},
		// No query runs before all is replayed, so that it needs as many connections as it has and not as the leader had.
		{"hot_standby", "off"},
		{"max_connections", "20"},
		{"max_wal_senders", "0"},
		{"max_worker_processes", "0"},
		{"max_logical_replication_workers", "0"},
		{"max_prepared_transactions", control["max_prepared_xacts setting"]},
		{"max_locks_per_transaction", control["max_locks_per_xact setting"]},
		{"shared_preload_libraries", strings.Join(preload, ",")},
		{"shared_buffers", "128MB"},
		// The node may have them, and the pod may not use them.
		{"huge_pages", "off"},
		{"autovacuum", "off"},
		{"logging_collector", "off"},
		{"log_destination", "stderr"},
		{"log_line_prefix", ""},
	} {
		args = append(args, "-c", o[0]+"="+o[1])
	}
	cmd := exec.Command(filepath.Join(programs, "postgres"), args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, io.MultiWriter(os.Stderr, s.said)
	if s.child, err = process.Begin(cmd); err != nil {
		return nil, err
	}
	if err := s.await(ctx); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

// await that all is replayed.
func (s *Server) await(ctx context.Context) error {
	for {
		if s.child.Within(lookEvery) {
			return &Unusable{"PostgreSQL does not start on what was restored: " + s.said.cause()}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("cannot wait for the server on what was restored: %w", ctx.Err())
		}
		conn, err := s.Connect(ctx, pgmember.RoleSuperuser, "postgres", nil)
		var said *pgconn.PgError
		switch {
		case err == nil:
			_ = conn.Close(ctx)
			return nil
		case errors.As(err, &said) && said.Code != cannotConnectNow:
			return &Unusable{"the platform cannot log in to what was restored: " + said.Message}
		}
	}
}

// Replayed is how far the write-ahead log was replayed, and when the last transaction of it was committed, if there was one.
func (s *Server) Replayed(ctx context.Context) (pgbackrest.LSN, time.Time, error) {
	conn, err := s.Connect(ctx, pgmember.RoleSuperuser, "postgres", nil)
	if err != nil {
		return 0, time.Time{}, err
	}
	defer managed.Close(ctx, conn)
	var (
		text string
		at   *time.Time
	)
	if err := conn.QueryRow(ctx, "select coalesce(pg_last_wal_replay_lsn(), '0/0')::text, pg_last_xact_replay_timestamp()").Scan(&text, &at); err != nil {
		return 0, time.Time{}, fmt.Errorf("cannot find out what was replayed: %w", err)
	}
	lsn, err := pgbackrest.ParseLSN(text)
	if at == nil {
		at = &time.Time{}
	}
	return lsn, *at, err
}

// Connect as a user to a database, with parameters of the session.
func (s *Server) Connect(ctx context.Context, user, database string, parameters map[string]string) (*pgx.Conn, error) {
	all := map[string]string{"application_name": "capstan-offline"}
	maps.Copy(all, parameters)
	return managed.Dial(ctx, s.Folder, 5432, user, database, all)
}

// Stop the server so that its data is whole.
func (s *Server) Stop(ctx context.Context) error {
	if s.child.Ended() {
		return errors.New("the server on what was restored ended by itself")
	}
	if err := s.child.Signal(syscall.SIGINT); err != nil {
		return fmt.Errorf("cannot stop the server on what was restored: %w", err)
	}
	select {
	case <-s.child.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(stopWithin):
		return fmt.Errorf("the server on what was restored does not stop within %s", stopWithin)
	}
}

// Kill it with its processes, if it runs. Its data is removed next.
func (s *Server) Kill() { s.child.Stop(syscall.SIGQUIT, 10*time.Second) }

// A tail is the end of what a program said.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = bytes.Clone(t.text[max(0, len(t.text)-maxTail):])
	return len(p), nil
}

// cause is the last line that ended it, or else the last line.
func (t *tail) cause() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cause(string(t.text))
}

// cause in what PostgreSQL or one of its programs said.
func cause(said string) string {
	last := "see the log of the pod"
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "FATAL:") || strings.HasPrefix(line, "PANIC:") {
			last = process.Head(line, maxTail)
		}
	}
	return last
}
