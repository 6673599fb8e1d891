// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/postmaster"
)

// A Reaper reaps orphans. The postmaster is one of them: when it ends without having removed its file, it was killed, and Patroni
// would notice it only in the next turn of its loop.
type Reaper struct {
	patroni *patroni.Client
	leads   func() bool
	log     *slog.Logger
}

// Run until the context ends.
func (r *Reaper) Run(ctx context.Context) error {
	process.Reap(ctx, func(pid int) {
		server, _ := postmaster.Find(pgmember.FolderData)
		if pid != server {
			return
		}
		r.log.Warn("PostgreSQL ended by itself", "pid", pid)
		if !r.leads() {
			return // it must not be woken: see Wake
		}
		go func() {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if err := r.patroni.Wake(ctx); err != nil {
				r.log.Warn("cannot wake Patroni", "error", err)
			}
		}()
	})
	return nil
}
