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
)

// A Manager makes the accounts of the platform, while this member is the leader.
type Manager struct {
	server   *mysql.Server
	seen     func() Seen
	reporter *report.Reporter
	log      *slog.Logger

	// verifier that was applied last, and when.
	verifier string
	applied  time.Time
	last     string
}

// once makes what is missing, and returns the pause before the next time.
func (m *Manager) once(ctx context.Context) time.Duration {
	if m.seen().Role != members.RoleLeader {
		m.reporter.Clear(mysqlmember.ReasonAccountsFailed)
		m.applied = time.Time{}
		return time.Hour // what the Keeper sees wakes it
	}
	raw, err := os.ReadFile(layout.Verifier)
	verifier := strings.TrimSuffix(string(raw), "\n")
	if err == nil && verifier == m.verifier && time.Since(m.applied) < manageEvery {
		return manageEvery
	}
	if err == nil {
		err = m.manage(ctx, verifier)
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
	m.verifier, m.applied = verifier, time.Now()
	return manageEvery
}

func (m *Manager) manage(ctx context.Context, verifier string) error {
	ctx, cancel := context.WithTimeout(ctx, manageLimit)
	defer cancel()
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
