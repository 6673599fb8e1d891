// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// A Refresher keeps copies of certificates fresh, and lets Patroni and PostgreSQL read what changed. No connection breaks.
type Refresher struct {
	copies     *certificate.Copies
	supervisor *Supervisor
	manage     loop.Wakeup
	log        *slog.Logger
}

// Run until the context ends.
func (r *Refresher) Run(ctx context.Context) error {
	files := map[string][]byte{}
	for _, name := range []string{layout.Configuration, layout.ConfigurationWAL, layout.Config, layout.Verifier} {
		files[name], _ = os.ReadFile(name)
	}
	last := ""
	for loop.Sleep(ctx, certificate.RefreshEvery); ctx.Err() == nil; loop.Sleep(ctx, certificate.RefreshEvery) {
		child := r.supervisor.Child()
		if child == nil {
			continue // the next start reads everything
		}
		changed, err := r.copies.Refresh(time.Now())
		if text := fmt.Sprint(err); err != nil && text != last {
			r.log.Error("keeping the certificates that are in use", "error", err)
			last = text
		}
		if changed {
			r.log.Info("certificates changed")
		}
		for name, before := range files {
			now, err := os.ReadFile(name)
			if err != nil || bytes.Equal(now, before) {
				continue
			}
			files[name] = now
			if name == layout.Configuration || name == layout.ConfigurationWAL {
				changed = true
			} else {
				r.manage.Call()
			}
		}
		if !changed {
			continue
		}
		if err := child.Signal(syscall.SIGHUP); err != nil {
			r.log.Error("cannot let Patroni read its configuration", "error", err)
		}
	}
	return nil
}
