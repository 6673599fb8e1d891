// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// How often roles and extensions are checked: when all is well, and while something is missing. At first sooner, because the
// provider creates databases seconds after there is a leader, and the user who created the Database waits for their extensions. Logins that may
// read changes come later as well, and others with each password: their consumers wait for the right to. An edit is noticed by its file.
const (
	manageEvery   = 10 * time.Minute
	manageLogins  = 15 * time.Second
	manageEdits   = 15 * time.Second
	manageMissing = 15 * time.Second
	manageFirst   = time.Second
	manageStandby = time.Minute
)

// A Manager creates what only a superuser can, while this member is the leader.
type Manager struct {
	leads    func() bool
	reporter *report.Reporter
	log      *slog.Logger

	// missing is the next pause while something is missing, and last the last result.
	missing time.Duration
	last    string

	// applied is the configuration of the last time that all was well, and due when the same is checked again.
	applied pgmember.Config
	due     time.Time
}

// once creates what is missing, and returns the pause before the next time.
func (m *Manager) once(ctx context.Context) time.Duration {
	if !m.leads() {
		m.reporter.Clear(pgmember.ReasonRolesOrExtensionsFailed)
		m.missing, m.due = manageFirst, time.Time{}
		return m.follow(ctx)
	}
	config, err := layout.ReadConfig()
	if err == nil && time.Now().Before(m.due) && reflect.DeepEqual(config, m.applied) {
		return manageEdits
	}
	pause := manageEdits
	m.due = time.Time{}
	if err == nil {
		err = manage(ctx, config)
	}
	var missing *managed.Missing
	switch {
	case err == nil:
		m.reporter.Clear(pgmember.ReasonRolesOrExtensionsFailed)
		m.missing, m.applied, m.due = manageFirst, config, time.Now().Add(whenWell(config))
	case errors.As(err, &missing):
		m.reporter.Clear(pgmember.ReasonRolesOrExtensionsFailed)
		pause, m.missing = m.missing, min(2*m.missing, manageMissing)
	case m.leads():
		pause = manageMissing
		m.reporter.Block(pgmember.ReasonRolesOrExtensionsFailed, err.Error())
	}
	if text := fmt.Sprint(err); text != m.last {
		m.last = text
		m.log.Info("looked at roles and extensions", "result", text)
	}
	return pause
}

// follow removes from a standby what only a leader has, and returns the pause before the next time. While its server does not answer
// it tries again soon.
func (m *Manager) follow(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := managed.DropFormer(ctx, pgmember.FolderSocket); err != nil {
		m.log.Info("cannot look at replication slots of a standby", "error", err)
		return manageMissing
	}
	return manageStandby
}

// whenWell is the pause when nothing is missing.
func whenWell(config pgmember.Config) time.Duration {
	if len(config.Replicators) > 0 {
		return manageLogins
	}
	return manageEvery
}

// queriedIn are the databases that the exporter runs queries in.
func queriedIn(config pgmember.Config) []string {
	in := make([]string, 0, len(config.Queries))
	for _, q := range config.Queries {
		in = append(in, q.Database)
	}
	return in
}

func manage(ctx context.Context, config pgmember.Config) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	verifier, err := os.ReadFile(layout.Verifier)
	if err != nil {
		return fmt.Errorf("cannot read the verifier of the platform's password: %w", err)
	}
	return managed.Apply(ctx, pgmember.FolderSocket, managed.Wanted{
		Databases: config.Databases, Extensions: config.Extensions, Verifier: strings.TrimSpace(string(verifier)), Pooled: config.Pooled,
		Slots: config.Slots, Publications: config.Publications, Replicators: config.Replicators, Queried: queriedIn(config),
	})
}
