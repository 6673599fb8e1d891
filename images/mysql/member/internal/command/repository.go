// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/health"
	"github.com/capstan-dev/capstan/images/member/process"
	host "github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/vault"
)

// Repository serves a volume of backups. It runs in a pod of its own: members archive there and restore from there, and pods that take and verify
// backups do. It has no key, and reaches none of them.
type Repository struct {
	IP     string `env:"POD_IP"    help:"Address of the pod."   placeholder:"ADDRESS"               required:""`
	Health string `default:":8009" env:"CAPSTAN_HEALTH_ADDRESS" help:"Address to answer probes at."`
}

// Run until the context ends.
func (c *Repository) Run(ctx context.Context, log *slog.Logger, version layout.Version) error {
	files := host.FilesIn(mysqlmember.FolderMembers)
	h := vault.Host{
		Address: net.JoinHostPort(c.IP, strconv.Itoa(mysqlmember.PortRepository)), Folder: layout.Vault, Volume: mysqlmember.FolderVolume,
		Config: func() (*tls.Config, error) { return certificate.Identity(files.Cert, files.Key, files.CA) },
	}
	log.Info("starting", "version", string(version), "folder", h.Folder)
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range []func(context.Context) error{
		func(ctx context.Context) error {
			return health.Serve(ctx, c.Health, &health.State{}, func(ctx context.Context) (bool, error) { return answers(ctx, h) })
		},
		func(ctx context.Context) error { process.Reap(ctx, func(int) {}); return nil },
		h.Serve,
	} {
		group.Go(func() error { return loop(ctx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// answers reports whether the host answers, with a certificate of the authority that is mounted. That certificate opens nothing, here neither.
func answers(ctx context.Context, h vault.Host) (bool, error) {
	config, err := h.Config()
	if err != nil {
		return false, err
	}
	// It is reached by its address, and shows the name of its Service.
	if names := config.Certificates[0].Leaf.DNSNames; len(names) > 0 {
		config.ServerName = names[0]
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", h.Address)
	if err != nil {
		return false, fmt.Errorf("the volume is not served: %w", err)
	}
	return true, conn.Close()
}
