// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// How often the accounts of the platform are compared: when all is well, and after a failure.
const (
	manageEvery  = 10 * time.Minute
	manageFailed = 15 * time.Second
	manageLimit  = 2 * time.Minute
	// readersEvery is how often it is compared which logins may read binary logs. The provider may make a login after the members know of it.
	readersEvery = 15 * time.Second
)

// A Manager makes the accounts of the platform, while this member is the leader, and says which logins may read binary logs.
type Manager struct {
	server   *mysql.Server
	seen     func() Seen
	reporter *report.Reporter
	log      *slog.Logger

	// role at the last time.
	role string
	// verifier that was applied last, and when.
	verifier string
	applied  time.Time
	// readers are the logins that could read binary logs at the last time. Nil: unknown.
	readers []string
	last    string
}

// once makes what is missing, and returns the pause before the next time.
func (m *Manager) once(ctx context.Context) time.Duration {
	role := m.seen().Role
	if role != m.role {
		m.role, m.readers, m.applied = role, nil, time.Time{}
	}
	if role != members.RoleLeader {
		m.reporter.Clear(mysqlmember.ReasonAccountsFailed)
	}
	if role == "" {
		return time.Hour // what the Keeper sees wakes it
	}
	ctx, cancel := context.WithTimeout(ctx, manageLimit)
	defer cancel()
	var err error
	if role == members.RoleLeader {
		err = m.accounts(ctx)
	}
	if err == nil {
		err = m.replicators(ctx, role)
	}
	if text := fmt.Sprint(err); text != m.last {
		m.last = text
		m.log.Info("looked at the accounts of the platform", "result", text)
	}
	if err != nil {
		if m.seen().Role == members.RoleLeader {
			m.reporter.Block(mysqlmember.ReasonAccountsFailed, err.Error())
		}
		return manageFailed
	}
	m.reporter.Clear(mysqlmember.ReasonAccountsFailed)
	return readersEvery
}

// replicators says which logins may read binary logs. While none may, and none could before, the server need not be asked.
func (m *Manager) replicators(ctx context.Context, role string) error {
	config, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	if len(config.Replicators) == 0 && m.readers != nil && len(m.readers) == 0 {
		return nil
	}
	if role == members.RoleLeader {
		if err := m.server.Replicators(ctx, config.Replicators); err != nil {
			return err
		}
	}
	if err := m.server.EndReplicators(ctx); err != nil {
		return err
	}
	m.readers = append([]string{}, config.Replicators...)
	return nil
}

// accounts of the platform, if they may have changed.
func (m *Manager) accounts(ctx context.Context) error {
	raw, err := os.ReadFile(layout.Verifier)
	if err != nil {
		return fmt.Errorf("cannot read the verifier of the platform's account: %w", err)
	}
	verifier := strings.TrimSuffix(string(raw), "\n")
	if verifier == m.verifier && time.Since(m.applied) < manageEvery {
		return nil
	}
	if err := m.manage(ctx, verifier); err != nil {
		return err
	}
	m.verifier, m.applied = verifier, time.Now()
	return nil
}

func (m *Manager) manage(ctx context.Context, verifier string) error {
	if err := m.server.Accounts(ctx, verifier); err != nil {
		return err
	}
	there, err := m.server.HasZones(ctx)
	if there || err != nil {
		return err
	}
	// It complains of files that are no zones.
	var statements bytes.Buffer
	cmd := exec.CommandContext(ctx, layout.ZonesTool, layout.Zones)
	cmd.Stdout = &statements
	if err := process.Do(cmd, time.Second); err != nil {
		return fmt.Errorf("cannot read time zones: %w", err)
	}
	return m.server.FillZones(ctx, statements.String())
}
