// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/queries"
)

// Exporter runs the exporter of the server, and exports the results of queries beside it.
type Exporter struct {
	Address string   `default:":9187"          env:"CAPSTAN_METRICS_ADDRESS"          help:"Address to serve metrics at."`
	Behind  string   `default:"127.0.0.1:9188" env:"CAPSTAN_BEHIND_ADDRESS"           help:"Address of the exporter that is run."`
	Program []string `arg:""                   help:"The exporter and its arguments." passthrough:""`
}

// Run until the context ends. Without the exporter it ends, too, so that its container starts again.
func (c *Exporter) Run(ctx context.Context, log *slog.Logger) error {
	program := append(slices.Clone(c.Program[1:]), "--web.listen-address="+c.Behind)
	child, err := process.Start("/usr/bin/"+c.Program[0], nil, program...)
	if err != nil {
		return err
	}
	r := &queries.Runner{
		Folder: pgmember.FolderSocket, User: pgmember.RoleExporter, Log: log,
		Config: func() ([]members.Query, error) {
			config, err := layout.ReadConfig()
			return config.Queries, err
		},
	}
	ended := func(ctx context.Context) error {
		select {
		case <-child.Done():
			return errors.Join(errors.New("the exporter ended by itself"), child.Err())
		case <-ctx.Done():
			child.Stop(syscall.SIGTERM, 5*time.Second)
			return nil
		}
	}
	return loop.Outlast(ctx, ended, r.Run, func(ctx context.Context) error { return r.Serve(ctx, c.Address, "http://"+c.Behind+"/metrics") })
}
