// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/health"
	"github.com/capstan-dev/capstan/images/member/logs"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/bouncer"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/lines"
)

// How a pooler stops: first it waits for its clients to leave by themselves, while no Service leads to it, then for transactions
// to end.
const (
	LeaveLimit = 30 * time.Second
	EndLimit   = 20 * time.Second
)

// Pooler runs a pooler.
type Pooler struct {
	Leader   string      `env:"CAPSTAN_LEADER"           help:"Name that leads to the leader."                                                                  placeholder:"HOST"                      required:""`
	Standbys string      `env:"CAPSTAN_STANDBYS"         help:"Name that leads to the standbys, for a pooler before them instead of the leader."                placeholder:"HOST"`
	Another  bool        `env:"CAPSTAN_SERVER_AUTHORITY" help:"The certificate that the server shows is of another authority than the certificates of members."`
	Health   string      `default:":8009"                env:"CAPSTAN_HEALTH_ADDRESS"                                                                           help:"Address to answer probes at."`
	Pause    string      `default:":8010"                env:"CAPSTAN_PAUSE_ADDRESS"                                                                            help:"Address to listen to members at."`
	Logs     logs.Format `env:"CAPSTAN_LOGS"             help:"JSON for lines of JSON, otherwise the text of each program."`
	Metrics  string      `default:":9127"                env:"CAPSTAN_METRICS_ADDRESS"                                                                          help:"Address to serve metrics at."`
}

// A pooler that runs.
type pooler struct {
	log      *slog.Logger
	copies   *certificate.Copies
	keeper   *bouncer.Keeper
	child    *process.Child
	stopping atomic.Bool
}

// Run the pooler until the context ends and PgBouncer has stopped.
func (c *Pooler) Run(ctx context.Context, log *slog.Logger, version layout.Version) error {
	if err := os.MkdirAll(pgmember.FolderPrivate, 0o750); err != nil {
		return fmt.Errorf("cannot prepare folders: %w", err)
	}
	// Each connection verifies the server for itself.
	lookout := func(host string, standby bool) *bouncer.Lookout {
		return &bouncer.Lookout{
			Host: host, Port: pgmember.PortPostgres, User: pgmember.RolePooler, Database: "postgres", Standby: standby,
			Config: func() (*tls.Config, error) { return certificate.ConfigForServer(pgmember.FolderTLS, c.Another) },
		}
	}
	p := &pooler{
		log:    log,
		copies: &certificate.Copies{Members: pgmember.FolderMembers, Server: pgmember.FolderServer, Link: pgmember.FolderTLS, Settle: certificate.Settle},
		keeper: &bouncer.Keeper{
			Log:     log,
			Console: bouncer.Console{Folder: pgmember.FolderPrivate, Port: pgmember.PortPostgres},
			Lookout: lookout(c.Leader, false),
		},
	}
	if c.Standbys != "" {
		p.keeper.Lookout, p.keeper.Leader = lookout(c.Standbys, true), lookout(c.Leader, false)
	}
	if _, err := p.copies.Refresh(time.Now()); err != nil {
		return err
	}
	if err := openFiles(); err != nil {
		return err
	}
	if c.Logs == logs.JSON {
		out, err := logs.Pipe(os.Stdout, lines.Pooler)
		if err != nil {
			return err
		}
		process.Into(out)
	}
	log.Info("starting", "version", version, "leader", c.Leader, "standbys", c.Standbys)
	var err error
	if p.child, err = process.Start(layout.Bouncer, nil, layout.Pooling); err != nil {
		return err
	}
	probes := &health.State{}
	config := func() (*tls.Config, error) { return certificate.Config(pgmember.FolderTLS) }
	// Clients wait until the last one has left, which takes longer than the signal.
	if err := loop.Outlast(ctx, p.await,
		func(ctx context.Context) error { return health.Serve(ctx, c.Health, probes, p.ready) },
		func(ctx context.Context) error {
			return bouncer.Serve(ctx, c.Pause, config, pgmember.MemberCommonName, p.keeper.Ask)
		},
		func(ctx context.Context) error { return bouncer.ServeMetrics(ctx, c.Metrics, p.keeper) },
		func(ctx context.Context) error { return p.beat(ctx, probes) },
		p.keeper.Run, p.refresh,
	); err != nil {
		_ = p.child.Signal(syscall.SIGKILL)
		return err
	}
	log.Info("stopped")
	return nil
}

// openFiles lets PgBouncer have as many clients as the container may have files.
func openFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("cannot find out how many files may be open: %w", err)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("cannot let more files be open: %w", err)
	}
	return nil
}

// ready reports whether clients may come: once a leader was seen, and then also without one, for they are to wait here.
func (p *pooler) ready(context.Context) (bool, error) {
	switch {
	case p.stopping.Load():
		return false, errors.New("it stops")
	case !p.keeper.Answers():
		return false, errors.New("PgBouncer does not answer")
	case !p.keeper.Known():
		return false, errors.New("no server was seen yet")
	}
	return true, nil
}

// beat reports to the probes whether PgBouncer answers.
func (p *pooler) beat(ctx context.Context, state *health.State) error {
	for ctx.Err() == nil {
		state.Beat(time.Now(), p.keeper.Answers(), true)
		loop.Sleep(ctx, time.Second)
	}
	return nil
}

// await the end of PgBouncer. One that ends by itself is an error; a signal brings it about in order.
func (p *pooler) await(ctx context.Context) error {
	select {
	case <-p.child.Done():
		return fmt.Errorf("PgBouncer ended by itself: %w", errors.Join(p.child.Err()))
	case <-ctx.Done():
	}
	p.stopping.Store(true)
	p.leave()
	for _, s := range []struct {
		signal syscall.Signal
		limit  time.Duration
	}{{syscall.SIGINT, EndLimit}, {syscall.SIGQUIT, time.Second}, {syscall.SIGKILL, time.Second}} {
		p.log.Info("stopping", "signal", s.signal.String(), "limit", s.limit.String())
		if err := p.child.Signal(s.signal); err != nil {
			return err
		}
		if p.child.Within(s.limit) {
			break
		}
	}
	return nil
}

// leave until no client is connected any more, or for as long as there is time. New ones are still taken: a Service may lead here
// for a moment, and PgBouncer goes through its signals only once.
func (p *pooler) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), LeaveLimit)
	defer cancel()
	p.log.Info("waiting for clients to leave", "limit", LeaveLimit.String())
	for ctx.Err() == nil && !p.child.Within(time.Second) {
		if n, err := p.keeper.Console.Clients(ctx); err == nil && n == 0 {
			return
		}
	}
}

// refresh copies of certificates, and let PgBouncer read what changed. No connection breaks.
func (p *pooler) refresh(ctx context.Context) error {
	file, err := os.ReadFile(layout.Pooling)
	if err != nil {
		return fmt.Errorf("cannot read the configuration of PgBouncer: %w", err)
	}
	last := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(certificate.RefreshEvery):
		}
		changed, err := p.copies.Refresh(time.Now())
		if text := fmt.Sprint(err); err != nil && text != last {
			p.log.Error("keeping the certificates that are in use", "error", err)
			last = text
		}
		if now, err := os.ReadFile(layout.Pooling); err == nil && !bytes.Equal(now, file) {
			file, changed = now, true
		}
		if !changed {
			continue
		}
		p.log.Info("configuration or certificates changed")
		if err := p.child.Signal(syscall.SIGHUP); err != nil {
			return err
		}
	}
}
