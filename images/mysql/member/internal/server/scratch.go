// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

const (
	// beginWithin is how long a server may take to answer over data that was copied: it reads its log first, and upgrades what an older
	// patch version wrote.
	beginWithin = 30 * time.Minute
	// endWithin is how long it may take to write what is in memory.
	endWithin = 30 * time.Minute
	// scratchID is the id of a server over a copy. It is no member's: a server skips events of its own id when it replays them.
	scratchID = 1<<32 - 1
)

// A Scratch is how a server is started over data that no client reaches: it listens on a socket in a folder only, is in no group, writes
// no binary log, and runs no event. What was copied must not act like the original.
//
// Its data is thrown away if the machine fails before it has stopped. So it writes everything once, and waits for no disk until it stops.
type Scratch struct {
	// Data is the folder of the data. What queries sort is beside it. Folder is the one of the socket.
	Data, Folder string
	// Account to log in as. Default: mysqlmember.AccountMember.
	Account string
	// Memory for pages of data, in bytes.
	Memory int64
	// Settings beside these, as in name=value.
	Settings []string
	// Plugins to load beside the one that programs log in by.
	Plugins []string
	// Log takes what the server says.
	Log io.Writer
}

// A Running server over data that no client reaches.
type Running struct {
	*mysql.Server

	child             *process.Child
	socket, temporary string
	// first error that the server wrote to its log.
	first atomic.Pointer[string]
}

// Initialize data in a folder that is not there, with the account root, which has no password.
func Initialize(ctx context.Context, data string) error {
	said, err := process.Run(ctx, "", layout.Server, "--no-defaults", "--datadir="+data, "--auto-generate-certs=OFF",
		"--caching-sha2-password-auto-generate-rsa-keys=OFF", "--initialize-insecure")
	if err != nil {
		return fmt.Errorf("cannot make data: %w: %s", err, process.Tail(said, 500))
	}
	return nil
}

// Start the server, and wait until it answers.
func (o Scratch) Start(ctx context.Context) (*Running, error) {
	// No other user opens it.
	folder := filepath.Join(o.Folder, "scratch")
	temporary, socket := o.Data+".tmp", filepath.Join(folder, "mysqld.sock")
	if err := errors.Join(os.RemoveAll(temporary), durable.Folders(folder, temporary)); err != nil {
		return nil, fmt.Errorf("cannot prepare the start of the server: %w", err)
	}
	args := []string{"--no-defaults"}
	for _, s := range append([]string{
		"datadir=" + o.Data, "socket=" + socket, "pid-file=" + socket + ".pid", "tmpdir=" + temporary,
		"server-id=" + strconv.FormatUint(scratchID, 10), "skip-networking=ON", "mysqlx=OFF", "secure-file-priv=NULL", "local-infile=OFF",
		"persisted-globals-load=OFF", "auto-generate-certs=OFF", "caching-sha2-password-auto-generate-rsa-keys=OFF", "partial-revokes=ON",
		"event-scheduler=OFF", "super-read-only=ON", "max-connections=30", "performance-schema=OFF",
		"skip-log-bin", "log-replica-updates=OFF", "gtid-mode=ON", "enforce-gtid-consistency=ON", "skip-replica-start=ON", "relay-log=relay",
		"relay-log-recovery=OFF", "replica-parallel-workers=4", "replica-preserve-commit-order=ON",
		"innodb-buffer-pool-size=" + strconv.FormatInt(o.Memory, 10), "innodb-doublewrite=OFF", "innodb-flush-log-at-trx-commit=0",
		"plugin-load-add=auth_socket.so",
	}, o.Settings...) {
		args = append(args, "--"+s)
	}
	for _, p := range o.Plugins {
		args = append(args, "--plugin-load-add="+p)
	}
	account := o.Account
	if account == "" {
		account = mysqlmember.AccountMember
	}
	asks, err := mysql.At(socket, account)
	if err != nil {
		return nil, err
	}
	r := &Running{Server: asks, socket: socket, temporary: temporary}
	cmd := exec.Command(layout.Server, args...)
	log := &lines{to: o.Log, note: r.note}
	cmd.Stdout, cmd.Stderr = log, log
	if r.child, err = process.Begin(cmd); err != nil {
		asks.Close()
		return nil, err
	}
	if err := r.await(ctx); err != nil {
		r.Kill()
		return nil, err
	}
	return r, nil
}

// await that it answers.
func (r *Running) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beginWithin)
	defer cancel()
	for {
		err := r.Do(ctx, "ask the server anything", "SELECT 1")
		switch {
		case err == nil:
			return nil
		case r.child.Ended():
			return fmt.Errorf("the server does not start: %s", r.Cause())
		case !errors.Is(err, mysql.ErrNoAnswer) || ctx.Err() != nil:
			return err
		}
		loop.Sleep(ctx, 100*time.Millisecond)
	}
}

// note the first error of the log.
func (r *Running) note(line []byte) {
	if _, text, found := bytes.Cut(line, []byte("[ERROR] ")); found && r.first.Load() == nil {
		said := strings.TrimRight(process.Head(string(text), 600), ".")
		r.first.Store(&said)
	}
}

// Socket that it listens on.
func (r *Running) Socket() string { return r.socket }

// EndsWithin reports whether the server has ended, or ends by itself within a time.
func (r *Running) EndsWithin(limit time.Duration) bool { return r.child.Within(limit) }

// Ended reports whether the server has ended, which it does by itself when data is damaged.
func (r *Running) Ended() bool { return r.child.Ended() }

// Cause is the first error that the server wrote to its log.
func (r *Running) Cause() string {
	if p := r.first.Load(); p != nil {
		return *p
	}
	return "see the log of the pod"
}

// Stop the server so that its data is whole.
func (r *Running) Stop() error {
	r.Close()
	if r.child.Ended() {
		return fmt.Errorf("the server ended by itself: %s", r.Cause())
	}
	if err := r.child.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if !r.child.Within(endWithin) {
		r.Kill()
		return fmt.Errorf("the server did not stop within %s", endWithin)
	}
	if err := r.child.Err(); err != nil {
		return fmt.Errorf("the server did not stop in order: %w: %s", err, r.Cause())
	}
	return os.RemoveAll(r.temporary)
}

// Kill the server, if it runs. Its data is thrown away.
func (r *Running) Kill() {
	r.Close()
	r.child.Stop(syscall.SIGKILL, time.Minute)
	_ = os.RemoveAll(r.temporary) // it is empty, and removed again before the next start
}

// Tidy removes from the data folder of a server that has stopped what is that server's and not the data's: its identity, keys that it made,
// and logs that it replayed.
func Tidy(data string) error {
	// The folder of a database has neither a dot nor a dash nor a hash in its name.
	for _, pattern := range []string{"auto.cnf", "mysqld-auto.cnf", "*.pem", "relay-*", "relay.*", "#clone"} {
		found, err := filepath.Glob(filepath.Join(data, pattern))
		for _, f := range found {
			err = errors.Join(err, os.RemoveAll(f))
		}
		if err != nil {
			return fmt.Errorf("cannot tidy the data up: %w", err)
		}
	}
	return nil
}

// storing are the parameters of a server that decide how data is stored or read, beside the memory that it takes.
var storing = []string{"innodb_ft_", "ft_", "ngram_", "lower_case_table_names", "innodb_page_size", "character_set_server", "collation_server", "innodb_redo_log_capacity"}

// Storing are the settings of members that a server over a copy must have as well, as Scratch takes them.
func Storing(base string) []string {
	var out []string
	for name, value := range Parameters(base) {
		for _, prefix := range storing {
			if strings.HasPrefix(name, prefix) {
				out = append(out, name+"="+value)
			}
		}
	}
	return out
}
