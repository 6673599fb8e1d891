// SPDX-License-Identifier: Apache-2.0

package bouncer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// lookLimit is how long a server may take to say whether it is the leader.
const lookLimit = 3 * time.Second

// A Lookout sees whether a server leads, through the name that leads to the leader, or with Standby whether one follows, through the name that
// leads to standbys.
type Lookout struct {
	// Address of the name, and Config to verify the server with, which is read again for each connection.
	Host   string
	Port   uint16
	Config func() (*tls.Config, error)
	// User and Database to log in with, by the certificate of Config.
	User, Database string
	Standby        bool

	conn *pgconn.PgConn
	last error
}

// Look at the leader. A connection that broke is tried again at once: a server that is there takes it.
func (l *Lookout) Look(ctx context.Context) Sight {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	known := l.conn != nil
	s, err := l.ask(ctx)
	if err != nil && known && ctx.Err() == nil {
		s, err = l.ask(ctx)
	}
	l.last = err
	if err == nil {
		return s
	}
	return Sight{Outlook: judge(err)}
}

// Err is why the last look saw no leader, if something went wrong.
func (l *Lookout) Err() error { return l.last }

// Wait for a while, or until the connection breaks, which is when the server ends. It reports whether it broke.
func (l *Lookout) Wait(ctx context.Context, d time.Duration) (broke bool) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if l.conn != nil && !l.conn.IsClosed() && l.conn.WaitForNotification(ctx) != nil && ctx.Err() == nil {
		return true
	}
	<-ctx.Done()
	return false
}

// Close the connection.
func (l *Lookout) Close() {
	if l.conn != nil {
		closeSoon(context.Background(), l.conn)
		l.conn = nil
	}
}

// ask whether the server is the leader, and when it was started.
func (l *Lookout) ask(ctx context.Context) (Sight, error) {
	if err := l.connect(ctx); err != nil {
		return Sight{}, err
	}
	results, err := l.conn.Exec(ctx, "select pg_catalog.pg_is_in_recovery()::text, extract(epoch from pg_catalog.pg_postmaster_start_time())::text").ReadAll()
	if err != nil {
		l.Close()
		return Sight{}, fmt.Errorf("cannot ask the server whether it is the leader: %w", err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		l.Close()
		return Sight{}, errors.New("cannot understand whether the server is the leader")
	}
	row := results[0].Rows[0]
	if follows := string(row[0]) == "true"; follows != l.Standby {
		// The name may lead elsewhere for a new connection.
		l.Close()
		return Sight{Outlook: Gone}, nil
	}
	return Sight{Serves, string(row[1])}, nil
}

func (l *Lookout) connect(ctx context.Context) error {
	if l.conn != nil && !l.conn.IsClosed() {
		return nil
	}
	verify, err := l.Config()
	if err != nil {
		return err
	}
	verify = verify.Clone()
	verify.ServerName = l.Host
	conn, err := connect(ctx, l.Host, l.Port, l.User, l.Database, verify, map[string]string{"application_name": "capstan-pooler", "search_path": "pg_catalog"})
	if err != nil {
		return fmt.Errorf("cannot reach the server: %w", err)
	}
	l.conn = conn
	return nil
}

// notServing are the codes of a server that stops, starts or was killed.
var notServing = []string{"57P01", "57P02", "57P03"}

// judge what an error says of the leader. The other clients of one that answers at all may do well, and where its certificate or
// its address is the trouble nothing is said.
func judge(err error) Outlook {
	if p := (*pgconn.PgError)(nil); errors.As(err, &p) {
		if slices.Contains(notServing, p.Code) {
			return Gone
		}
		return Answers
	}
	if n := (*net.DNSError)(nil); errors.As(err, &n) {
		return Unclear
	}
	for _, gone := range []error{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
	} {
		if errors.Is(err, gone) {
			return Gone
		}
	}
	if t := net.Error(nil); errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout() {
		return Silent
	}
	return Unclear
}
