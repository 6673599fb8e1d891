// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/health"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/repository"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/volume"
)

// repositoryCmd serves a volume of backups. It runs in a pod of its own, which is the host of the repository: members archive there and
// restore from there, and it takes backups of them when who does so on schedule asks for it.
type repositoryCmd struct {
	IP     string `env:"POD_IP"    help:"Address of the pod."   placeholder:"ADDRESS"               required:""`
	Health string `default:":8009" env:"CAPSTAN_HEALTH_ADDRESS" help:"Address to answer probes at."`
}

// A repositoryHost that runs.
type repositoryHost struct {
	log     *slog.Logger
	tls     pgbackrest.TLS
	folders pgbackrest.Folders
	address string
}

// Run until the context ends.
func (c *repositoryCmd) Run(ctx context.Context, log *slog.Logger) error {
	h := &repositoryHost{
		log: log,
		tls: pgbackrest.TLS{
			Cert: filepath.Join(layout.Members, "tls.crt"), Key: filepath.Join(layout.Members, "tls.key"), CA: filepath.Join(layout.Members, "ca.crt"), Address: c.IP,
		},
		folders: pgbackrest.Folders{Data: layout.Data, Socket: layout.Postgres, Lock: filepath.Join(filepath.Dir(pgbackrest.ServerConfig), "lock")},
		address: net.JoinHostPort(c.IP, strconv.Itoa(pgbackrest.Port)),
	}
	// To make a stanza locks out who archives. What is served has locks of its own.
	served := h.folders
	served.Lock += "-served"
	for _, dir := range []string{h.folders.Lock, served.Lock, layout.Repository} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot prepare folders of the repository: %w", err)
		}
	}
	if _, err := pgbackrest.Server(layout.Repository, served, h.tls).Write(pgbackrest.ServerConfig); err != nil {
		return err
	}
	log.Info("starting", "version", version, "folder", layout.Repository)
	host := repository.Host{
		Address: net.JoinHostPort(c.IP, strconv.Itoa(pgbackrest.PortRepository)), Config: h.tls.Client, Objects: layout.Objects, Volume: layout.Volume,
		Take: h.take, Create: h.create,
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range []func(context.Context) error{
		func(ctx context.Context) error { return health.Serve(ctx, c.Health, &health.State{}, h.ready) },
		func(ctx context.Context) error { process.Reap(ctx, func(int) {}); return nil },
		h.serve, host.Serve,
	} {
		group.Go(func() error { return loop(ctx) })
	}
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // Each says what it could not do.
	}
	log.Info("stopped")
	return nil
}

// serve the repository until the context ends: a server that ends is started again, and one whose certificate changed reads it.
func (h *repositoryHost) serve(ctx context.Context) error {
	shown, err := h.certificate()
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		child, err := process.Start(pgbackrest.Program, nil, "--config="+pgbackrest.ServerConfig, "server")
		if err != nil {
			return err
		}
		for served := true; served; {
			select {
			case <-ctx.Done():
				_ = child.Signal(syscall.SIGTERM)
				<-child.Done()
				served = false
			case <-child.Done():
				h.log.Warn("the server of pgBackRest ended", "result", fmt.Sprint(child.Err()))
				sleep(ctx, firstPause)
				served = false
			case <-time.After(refreshEvery):
				now, err := h.certificate()
				if err != nil {
					h.log.Error("keeping the certificate that is in use", "error", err)
				} else if !bytes.Equal(now, shown) {
					h.log.Info("the certificate changed")
					shown, err = now, child.Signal(syscall.SIGHUP)
				}
				if err != nil && ctx.Err() == nil {
					h.log.Warn("cannot let the server read its certificate", "error", err)
				}
			}
		}
	}
	return nil
}

// certificate in use, by its hash. It is an error as long as it cannot be used.
func (h *repositoryHost) certificate() ([]byte, error) {
	if _, err := tls.LoadX509KeyPair(h.tls.Cert, h.tls.Key); err != nil {
		return nil, fmt.Errorf("cannot use the certificate of the repository: %w", err)
	}
	sum := sha256.New()
	for _, file := range []string{h.tls.Cert, h.tls.Key, h.tls.CA} {
		raw, err := os.ReadFile(file) //nolint:gosec // It is a constant.
		if err != nil {
			return nil, fmt.Errorf("cannot read the certificate of the repository: %w", err)
		}
		_, _ = sum.Write(raw)
	}
	return sum.Sum(nil), nil
}

// ready tells whether pgBackRest answers, with a certificate of the authority that is mounted.
func (h *repositoryHost) ready(ctx context.Context) (bool, error) {
	config, err := h.tls.Client()
	if err != nil {
		return false, err
	}
	// It is reached by its address, and shows the name of its Service.
	if names := config.Certificates[0].Leaf.DNSNames; len(names) > 0 {
		config.ServerName = names[0]
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", h.address)
	if err != nil {
		return false, fmt.Errorf("pgBackRest does not answer: %w", err)
	}
	return true, conn.Close() //nolint:wrapcheck // As above.
}

// take a backup of members that are reached by their names.
func (h *repositoryHost) take(ctx context.Context, s pgbackrest.Settings) (any, error) {
	var r result
	err := h.with(s, func(run pgbackrest.Runner) (err error) {
		r, err = take(ctx, h.log, run, s)
		return err
	})
	return r, err
}

// create the stanza of members that are reached by their names. It does nothing for one that is there, and fails for one of other data.
func (h *repositoryHost) create(ctx context.Context, s pgbackrest.Settings) error {
	return h.with(s, func(run pgbackrest.Runner) error {
		_, err := run.Run(ctx, "stanza-create", "--stanza="+s.Stanza)
		return err //nolint:wrapcheck // They are pgBackRest's words.
	})
}

// with a configuration for these settings, which has the key and is gone afterwards.
func (h *repositoryHost) with(s pgbackrest.Settings, do func(pgbackrest.Runner) error) error {
	local, err := pgbackrest.ReadLocal(layout.Repository, keyIf(s.Encrypted, layout.BackupKey))
	if err != nil {
		return err //nolint:wrapcheck // It says what is missing.
	}
	dir, err := os.MkdirTemp(filepath.Dir(pgbackrest.ServerConfig), "with-")
	if err != nil {
		return fmt.Errorf("cannot prepare a configuration: %w", err)
	}
	file := filepath.Join(dir, "pgbackrest.conf")
	_, err = pgbackrest.Host(s, local, h.folders, h.tls, layout.PgBackRest).Write(file)
	if err == nil {
		err = do(pgbackrest.Runner{Program: pgbackrest.Program, Config: file})
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// createStanza of the Database, unless it is there. The host of a volume does it itself.
func createStanza(ctx context.Context, run pgbackrest.Runner, s pgbackrest.Settings) error {
	r, err := pgbackrest.Read(layout.Bucket, s.Repository)
	if err != nil {
		return err //nolint:wrapcheck // It says what is missing.
	}
	if r.Served == nil {
		_, err := run.Run(ctx, "stanza-create", "--stanza="+s.Stanza)
		return err //nolint:wrapcheck // They are pgBackRest's words.
	}
	return repository.Create(ctx, r, s) //nolint:wrapcheck // It says what it could not do.
}

// filledEvery is how often the leader asks how full the volume of backups is.
const filledEvery = time.Minute

// fills asks how full the volume of backups is, if this member leads and it is one. What was told stays while nobody answers.
func (b *backups) fills(ctx context.Context, s pgbackrest.Settings) {
	if !b.leads.Load() || s.Repository == "" {
		b.repository, b.measured = members.RepositoryReport{}, time.Time{}
		return
	}
	if time.Since(b.measured) < filledEvery {
		return
	}
	b.measured = time.Now()
	r, err := pgbackrest.Read(layout.Bucket, s.Repository)
	if err != nil || r.Served == nil {
		return // What is wrong is told as what hinders the archive.
	}
	u, err := repository.Usage(ctx, r)
	if err != nil {
		b.log.Warn("cannot tell how full the volume of backups is", "error", err)
		return
	}
	b.repository = members.RepositoryReport{
		Disk:        volume.Class(b.repository.Disk, u.Percent),
		UsedPercent: int32(volume.Step(int(b.repository.UsedPercent), u.Percent)), //nolint:gosec // It is at most 100.
		FileSystem:  fmt.Sprintf("%dMi", u.Size>>20),
	}
}
