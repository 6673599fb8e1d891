// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/health"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/volume"
)

// refreshEvery is how often what is mounted is looked at. The kubelet brings changes about once a minute.
const refreshEvery = 10 * time.Second

// reap orphans. The postmaster is one of them: when it ends without having removed its file, it was killed, and Patroni would see it
// only at the next turn of its loop.
func (m *member) reap(ctx context.Context) error {
	process.Reap(ctx, func(pid int) {
		postmaster, _ := process.Postmaster(layout.Data)
		if pid != postmaster {
			return
		}
		m.log.Warn("PostgreSQL ended by itself", "pid", pid)
		if !m.leads.Load() {
			return // it must not be woken: see Wake
		}
		go func() {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if err := m.patroni.Wake(ctx); err != nil {
				m.log.Warn("cannot wake Patroni", "error", err)
			}
		}()
	})
	return nil
}

// listen to callbacks and handovers.
func (m *member) listen(ctx context.Context) error {
	if err := os.Remove(layout.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot listen to callbacks: %w", err)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: layout.Socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("cannot listen to callbacks: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	buf := make([]byte, maxNote)
	for {
		n, err := conn.Read(buf)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // The socket was closed because the context ended.
		}
		if err != nil {
			return fmt.Errorf("cannot listen to callbacks: %w", err)
		}
		m.log.Info("told", "note", string(buf[:n]))
		switch action, said, _ := strings.Cut(string(buf[:n]), ": "); action {
		case noteBackup:
			m.backedUp.Call()
			continue
		case noteArchive:
			m.archived.Call()
			continue
		case noteRestore:
			m.told.hinder(restoreFailed, said)
			continue
		}
		m.look.Call()
	}
}

// refresh copies of certificates, and let Patroni and PostgreSQL read what changed. No connection breaks.
func (m *member) refresh(ctx context.Context) error {
	files := map[string][]byte{}
	seen := map[string]string{}
	for _, name := range []string{layout.Configuration, layout.Wanted, layout.Verifier} {
		files[name], _ = os.ReadFile(name) //nolint:gosec // The names are constants.
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(refreshEvery):
		}
		child := m.child.Load()
		if child == nil {
			continue // the next start reads everything
		}
		changed, err := m.copies.Refresh(time.Now())
		if text := fmt.Sprint(err); err != nil && seen["certificates"] != text {
			m.log.Error("keeping the certificates that are in use", "error", err)
			seen["certificates"] = text
		}
		if changed {
			m.log.Info("certificates changed")
		}
		for name, before := range files {
			now, err := os.ReadFile(name) //nolint:gosec // The names are constants.
			if err != nil || bytes.Equal(now, before) {
				continue
			}
			files[name] = now
			if name == layout.Configuration {
				changed = true
			} else {
				m.manage.Call()
			}
		}
		if !changed {
			continue
		}
		if err := child.Signal(syscall.SIGHUP); err != nil {
			m.log.Error("cannot let Patroni read its configuration", "error", err)
		}
	}
}

// watch over Patroni: one that is frozen is started anew, which PostgreSQL does not notice.
func (m *member) watch(ctx context.Context) error {
	var over *health.Watch
	var of *process.Child
	storage := &volume.Responder{Dir: layout.Volume}
	for {
		pause := 5 * time.Second
		if child := m.child.Load(); child == nil {
			of, over = nil, nil
			m.state.Beat(time.Now(), true, true)
		} else {
			if child != of {
				of, over = child, health.NewWatch(time.Now())
			}
			alive, err := m.askAlive(ctx)
			silent := patroni.Silent(err)
			if silent {
				pause = time.Second // it is to be told before the lock runs out
			}
			if err != nil && !silent {
				// It is there, and what is wrong is between us: a new one would not mend it.
				m.log.Error("cannot understand Patroni", "error", err)
				alive = true
			}
			answers := alive || storage.Answers(2*time.Second)
			now := time.Now()
			m.state.Beat(now, alive, answers)
			// A volume that hangs holds Patroni up, and the next one would fare no better.
			if why := over.Look(now, silent, alive); why != "" && answers && ctx.Err() == nil {
				m.renew(child, fmt.Sprintf("%s (%v)", why, err))
				of = nil
				<-child.Done()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// askAlive asks Patroni whether its loop runs.
func (m *member) askAlive(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return m.patroni.Alive(ctx)
}
