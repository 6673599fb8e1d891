// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/health"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/notes"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/postmaster"
)

// A Reaper reaps orphans. The postmaster is one of them: when it ends without having removed its file, it was killed, and Patroni
// would notice it only in the next turn of its loop.
type Reaper struct {
	patroni *patroni.Client
	role    Leadership
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
		if !r.role.Leads() {
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

// A Listener receives notes and wakes the loops that they are for.
type Listener struct {
	reporter                         *Reporter
	label, backupEnded, archiveNoted loop.Wakeup
	log                              *slog.Logger
}

// Run until the context ends.
func (l *Listener) Run(ctx context.Context) error {
	return notes.Receive(ctx, func(text string) {
		l.log.Info("received", "note", text)
		switch subject, said, _ := strings.Cut(text, ": "); subject {
		case notes.Backup:
			l.backupEnded.Call()
		case notes.Archive:
			l.archiveNoted.Call()
		case notes.Restore:
			l.reporter.Block(members.ReasonRestoreFailed, said)
		default:
			l.label.Call()
		}
	})
}

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
	for _, name := range []string{layout.Configuration, layout.Config, layout.Verifier} {
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
			if name == layout.Configuration {
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

// A Watchdog watches over Patroni: one that is frozen is restarted, which PostgreSQL does not notice.
type Watchdog struct {
	patroni    *patroni.Client
	supervisor *Supervisor
	probes     *health.State
	log        *slog.Logger

	// watch over the Patroni of.
	watch *health.Watch
	of    *process.Child
}

// Run until the context ends.
func (w *Watchdog) Run(ctx context.Context) error {
	storage := &volume.Responder{Dir: pgmember.FolderVolume}
	loop.Repeat(ctx, nil, func(ctx context.Context) time.Duration {
		child := w.supervisor.Child()
		if child == nil {
			w.of, w.watch = nil, nil
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
		answers := alive || storage.Answers(2*time.Second)
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
	})
	return nil
}

// measureEvery is how often the volume is measured.
const measureEvery = 15 * time.Second

// A Meter reports how full the volume is, and what fills it. It does not need the server, which a full volume may have stopped.
type Meter struct {
	reporter *Reporter
	log      *slog.Logger

	class string
	step  int
	last  string
}

// Run until the context ends.
func (m *Meter) Run(ctx context.Context) error {
	loop.Repeat(ctx, nil, func(ctx context.Context) time.Duration {
		if err := m.measure(ctx); err != nil && err.Error() != m.last {
			m.last = err.Error()
			m.log.Error("cannot measure the volume", "error", err)
		}
		return measureEvery
	})
	return nil
}

// measure the volume once.
func (m *Meter) measure(ctx context.Context) error {
	u, err := volume.Measure(pgmember.FolderVolume)
	if err != nil {
		return err
	}
	m.class, m.step = volume.Class(m.class, u.Percent), volume.Step(m.step, u.Percent)
	l, err := pgdata.MeasureLog(pgmember.FolderData)
	if err != nil {
		return err
	}
	r := members.VolumeReport{UsedPercent: int32(m.step), FileSystem: fmt.Sprintf("%dMi", u.Size>>20)} //nolint:gosec // It is at most 100.
	if r.Fill, r.Slot = pgdata.Fill(u, l, "", 0); r.Fill == members.FillWAL {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		// The log fills the volume also when the server does not report its slots.
		if slot, held, err := managed.HoldingSlot(ctx, pgmember.FolderSocket); err == nil {
			r.Fill, r.Slot = pgdata.Fill(u, l, slot, held)
		}
	}
	m.reporter.change(func(report *members.Report) { report.Disk, report.Volume = m.class, r })
	return nil
}

// How often roles and extensions are checked: when all is well, and while something is missing. At first sooner, because the
// provider creates databases seconds after there is a leader, and the user who created the Database waits for their extensions.
const (
	manageEvery   = 10 * time.Minute
	manageMissing = 15 * time.Second
	manageFirst   = time.Second
)

// A Manager creates what only a superuser can, while this member is the leader.
type Manager struct {
	role     Leadership
	reporter *Reporter
	wake     loop.Wakeup
	log      *slog.Logger

	// missing is the next pause while something is missing, and last the last result.
	missing time.Duration
	last    string
}

// Run until the context ends.
func (m *Manager) Run(ctx context.Context) error {
	m.missing = manageFirst
	loop.Repeat(ctx, m.wake, m.once)
	return nil
}

// once creates what is missing, and returns the pause before the next time.
func (m *Manager) once(ctx context.Context) time.Duration {
	if !m.role.Leads() {
		m.reporter.Clear(pgmember.ReasonRolesOrExtensionsFailed)
		m.missing = manageFirst
		return manageEvery
	}
	pause := manageEvery
	err := manage(ctx)
	var missing *managed.Missing
	switch {
	case err == nil:
		m.reporter.Clear(pgmember.ReasonRolesOrExtensionsFailed)
		m.missing = manageFirst
	case errors.As(err, &missing):
		m.reporter.Clear(pgmember.ReasonRolesOrExtensionsFailed)
		pause, m.missing = m.missing, min(2*m.missing, manageMissing)
	case m.role.Leads():
		pause = manageMissing
		m.reporter.Block(pgmember.ReasonRolesOrExtensionsFailed, err.Error())
	}
	if text := fmt.Sprint(err); text != m.last {
		m.last = text
		m.log.Info("looked at roles and extensions", "result", text)
	}
	return pause
}

// manage roles and extensions once.
func manage(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	config, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	verifier, err := os.ReadFile(layout.Verifier)
	if err != nil {
		return fmt.Errorf("cannot read the verifier of the platform's password: %w", err)
	}
	return managed.Apply(ctx, pgmember.FolderSocket, managed.Wanted{
		Databases: config.Databases, Extensions: config.Extensions, Verifier: strings.TrimSpace(string(verifier)), Pooled: config.Pooled,
	})
}
