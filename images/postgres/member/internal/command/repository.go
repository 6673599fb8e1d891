// SPDX-License-Identifier: Apache-2.0

package command

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

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/health"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/outcome"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/repository"
)

// Repository serves a volume of backups. It runs in a pod of its own, which is the host of the repository: members archive there
// and restore from there, and it takes backups of them when who does so on schedule asks for it.
type Repository struct {
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
func (c *Repository) Run(ctx context.Context, log *slog.Logger, version layout.Version) error {
	h := &repositoryHost{
		log:     log,
		tls:     pgbackrest.Identity(pgmember.FolderMembers),
		folders: pgbackrest.Folders{Data: pgmember.FolderData, Socket: pgmember.FolderSocket, Lock: filepath.Join(filepath.Dir(pgbackrest.ServerConfig), "lock")},
		address: net.JoinHostPort(c.IP, strconv.Itoa(pgmember.PortBackup)),
	}
	h.tls.Address = c.IP
	// To make a stanza locks out who archives. What is served has locks of its own.
	served := h.folders
	served.Lock += "-served"
	if err := durable.Folders(h.folders.Lock, served.Lock, layout.Repository); err != nil {
		return err
	}
	if _, err := pgbackrest.Server(layout.Repository, served, h.tls).Write(pgbackrest.ServerConfig); err != nil {
		return err
	}
	log.Info("starting", "version", version, "folder", layout.Repository)
	host := repository.Host{
		Address: net.JoinHostPort(c.IP, strconv.Itoa(pgmember.PortRepository)), Config: h.tls.Client, Objects: layout.Objects, Volume: pgmember.FolderVolume,
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
		return err
	}
	log.Info("stopped")
	return nil
}

// serve the repository until the context ends: a server that ends is restarted, and one whose certificate changed reads it.
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
				loop.Sleep(ctx, time.Second)
				served = false
			case <-time.After(certificate.RefreshEvery):
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
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read the certificate of the repository: %w", err)
		}
		_, _ = sum.Write(raw)
	}
	return sum.Sum(nil), nil
}

// ready reports whether pgBackRest answers, with a certificate of the authority that is mounted.
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
	return true, conn.Close()
}

// take a backup of members that are reached by their names.
func (h *repositoryHost) take(ctx context.Context, s pgmember.Backup) (any, error) {
	var r outcome.Backup
	err := h.with(s, func(run pgbackrest.Runner) (err error) {
		r, err = take(ctx, h.log, run, s)
		return err
	})
	return r, err
}

// create the stanza of members that are reached by their names. It does nothing for one that is there, and fails for one of other
// data.
func (h *repositoryHost) create(ctx context.Context, s pgmember.Backup) error {
	return h.with(s, func(run pgbackrest.Runner) error {
		_, err := run.Run(ctx, "stanza-create", "--stanza="+s.Stanza)
		return err
	})
}

// with a configuration for these settings, which has the key and is gone afterwards.
func (h *repositoryHost) with(s pgmember.Backup, do func(pgbackrest.Runner) error) error {
	local, err := pgbackrest.ReadLocal(layout.Repository, pgbackrest.KeyIf(s.Encrypted, pgmember.FolderBackupKey))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(pgbackrest.ServerConfig), "with-")
	if err != nil {
		return fmt.Errorf("cannot prepare a configuration: %w", err)
	}
	run, err := pgbackrest.Host(s, local, h.folders, h.tls, layout.PgBackRest).Runner(filepath.Join(dir, "pgbackrest.conf"))
	if err == nil {
		err = do(run)
	}
	return errors.Join(err, os.RemoveAll(dir))
}
