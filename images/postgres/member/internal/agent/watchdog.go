// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/images/member/health"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

// A Watchdog watches over Patroni: one that is frozen is restarted, which PostgreSQL does not notice.
type Watchdog struct {
	patroni    *patroni.Client
	supervisor *Supervisor
	probes     *health.State
	storage    []*volume.Responder
	log        *slog.Logger

	// works reports whether Patroni answered at the last look, and its loop ran. Only once writes it.
	works atomic.Bool
	// watch over the Patroni of.
	watch *health.Watch
	of    *process.Child
}

// Works reports whether there is a Patroni that answered at the last look, and whose loop ran.
func (w *Watchdog) Works() bool { return w.works.Load() && w.supervisor.Child() != nil }

// once looks at Patroni, and returns the pause before the next look.
func (w *Watchdog) once(ctx context.Context) time.Duration {
	child := w.supervisor.Child()
	if child == nil {
		w.of, w.watch = nil, nil
		w.works.Store(false)
		w.probes.Beat(time.Now(), true, true)
		return 5 * time.Second
	}
	if child != w.of {
		w.of, w.watch = child, health.NewWatch(time.Now())
	}
	ask, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	alive, err := w.patroni.Alive(ask)
	silent := patroni.Silent(err)
	if err != nil && !silent {
		// It runs, and the trouble is between us: a new one would not fix it.
		w.log.Error("cannot understand Patroni", "error", err)
		alive = true
	}
	w.works.Store(alive)
	answers := alive || !slices.ContainsFunc(w.storage, func(r *volume.Responder) bool { return !r.Answers(2 * time.Second) })
	now := time.Now()
	w.probes.Beat(now, alive, answers)
	// A volume that hangs blocks Patroni, and the next one would fare no better.
	if why := w.watch.Look(now, silent, alive); why != "" && answers && ctx.Err() == nil {
		w.supervisor.Restart(child, fmt.Sprintf("%s (%v)", why, err))
		w.of = nil
	}
	if silent {
		return time.Second // it has to be known before the lock expires
	}
	return 5 * time.Second
}
