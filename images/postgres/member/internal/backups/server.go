// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// hastenFor is how long a backup of this member is hastened.
const hastenFor = 3 * time.Minute

// A server of pgBackRest, by which other members and the pods that take backups reach this one.
type server struct {
	child *process.Child
	// waits reports whether the server would run if there were certificates.
	waits bool
	// session is when a pod that takes a backup was first observed at this member.
	session time.Time
}

// ended is closed when the server has ended by itself; nil while none runs.
func (r *server) ended() <-chan struct{} {
	if r.child == nil {
		return nil
	}
	return r.child.Done()
}

func (r *server) end() {
	if r.child != nil {
		_ = r.child.Signal(syscall.SIGTERM)
		<-r.child.Done()
		r.child = nil
	}
}

// configure pgBackRest, run its server, and let it read what changed. What could not be read again stays. It reports whether the
// configuration changed.
func (r *server) configure(s pgmember.Backup, address string, log *slog.Logger) (changed bool, err error) {
	where, err := pgbackrest.Configured(s)
	if err != nil {
		return false, err
	}
	folders := pgbackrest.Folders{Data: pgmember.FolderData, Socket: pgmember.FolderSocket, Spool: layout.Spool, Lock: layout.Lock}
	if err := durable.Folders(folders.Spool, folders.Lock); err != nil {
		return false, err
	}
	tls := pgbackrest.TLS{Cert: pgmember.FileMemberCert, Key: pgmember.FileMemberKey, CA: pgmember.FileMemberCA, Address: address}
	changed, err = pgbackrest.Member(s, where, folders, tls).Write(layout.PgBackRest)
	if err != nil {
		return false, err
	}
	switch {
	case r.child == nil:
	case r.child.Ended():
		log.Warn("the server of pgBackRest ended", "result", fmt.Sprint(r.child.Err()))
		r.child = nil
	case changed:
		return true, r.child.Signal(syscall.SIGHUP)
	default:
		return false, nil
	}
	_, err = os.Stat(tls.Cert)
	// Copies of certificates come when the member may run.
	if r.waits = err != nil; r.waits {
		return changed, nil
	}
	r.child, err = process.Start(pgbackrest.Program, nil, "--config="+layout.PgBackRest, "server")
	return changed, err
}

// hasten a backup that reads this member while it is a standby: it waits for a checkpoint here that has what the leader wrote
// when the backup began, and by itself PostgreSQL takes minutes for that.
func (r *server) hasten(ctx context.Context, leads bool, log *slog.Logger) {
	if r.child == nil || leads || len(process.Descendants(r.child.PID())) == 0 {
		r.session = time.Time{}
		return
	}
	if r.session.IsZero() {
		r.session = time.Now()
	}
	if time.Since(r.session) > hastenFor {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := managed.Checkpoint(ctx, pgmember.FolderSocket); err != nil {
		log.Warn("a backup of this member waits for a checkpoint", "error", err)
	}
}
