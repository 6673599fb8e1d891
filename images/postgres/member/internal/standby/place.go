// SPDX-License-Identifier: Apache-2.0

package standby

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// codeRemoved is what a leader answers that does not have the requested part of the write-ahead log any more: undefined_file.
const codeRemoved = "58P01"

// sendLimit is how long a leader gets to send something. One that has nothing to send has removed nothing.
const sendLimit = 5 * time.Second

// A place in the write-ahead log that a standby has come to.
type place struct {
	LSN      string
	Timeline int64
	// Paused reports whether a person stopped the replay.
	Paused bool
}

// own place of this standby.
func own(ctx context.Context) (place, error) {
	var p place
	_, err := managed.Ask(ctx, pgmember.FolderSocket, pgmember.PortPostgres, `select
		greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::text,
		greatest((select timeline_id from pg_control_checkpoint()), (select min_recovery_end_timeline from pg_control_recovery()))::bigint,
		pg_is_wal_replay_paused()`, nil, &p.LSN, &p.Timeline, &p.Paused)
	if err != nil {
		return place{}, fmt.Errorf("cannot find out how far this standby is: %w", err)
	}
	return p, nil
}

// removed reports whether the leader at an address has removed the write-ahead log at the place. The leader decides: the
// request is to stream from there, as the standby does it. Any other refusal is an error: a place on another history is no reason to copy anything.
func (p place) removed(ctx context.Context, leader string) (bool, error) {
	trust, err := certificate.ConfigForServer(pgmember.FolderTLS, true)
	if err != nil {
		return false, err
	}
	cfg, err := pgconn.ParseConfig("sslmode=disable")
	if err != nil {
		return false, fmt.Errorf("cannot connect to the leader: %w", err)
	}
	cfg.Host, cfg.Port, cfg.User, cfg.Database, cfg.TLSConfig = leader, pgmember.PortPostgres, pgmember.RoleReplication, "", unnamed(trust)
	// The name is no member's: it must not count as a standby that has commits.
	cfg.RuntimeParams = map[string]string{"replication": "true", "application_name": "capstan-probe"}
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, fmt.Errorf("cannot connect to the leader: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	conn.Frontend().SendQuery(&pgproto3.Query{String: fmt.Sprintf("START_REPLICATION PHYSICAL %s TIMELINE %d", p.LSN, p.Timeline)})
	if err := conn.Frontend().Flush(); err != nil {
		return false, fmt.Errorf("cannot ask the leader for the write-ahead log: %w", err)
	}
	return answer(ctx, conn)
}

// answer of the leader to the request to stream: whether it has removed what was requested.
func answer(ctx context.Context, conn *pgconn.PgConn) (bool, error) {
	wait, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	for {
		message, err := conn.ReceiveMessage(wait)
		if err != nil {
			if wait.Err() != nil && ctx.Err() == nil {
				return false, nil // there is nothing to send, so nothing is missing
			}
			return false, fmt.Errorf("cannot ask the leader for the write-ahead log: %w", err)
		}
		switch m := message.(type) {
		case *pgproto3.ErrorResponse:
			if m.Code == codeRemoved {
				return true, nil
			}
			return false, fmt.Errorf("the leader refuses to send the write-ahead log: %s (%s)", m.Message, m.Code)
		case *pgproto3.CopyData:
			if len(m.Data) > 0 && m.Data[0] == 'w' {
				return false, nil
			}
		case *pgproto3.CopyDone, *pgproto3.CommandComplete:
			return false, nil // the timeline ends there
		}
	}
}

// unnamed trusts every server with a certificate of the authority, of any name: members reach each other by address.
func unnamed(trust *tls.Config) *tls.Config {
	c := trust.Clone()
	c.InsecureSkipVerify = true // VerifyConnection verifies all but the name.
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("the leader has no certificate")
		}
		between := x509.NewCertPool()
		for _, c := range s.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: trust.RootCAs, Intermediates: between})
		return err
	}
	return c
}
