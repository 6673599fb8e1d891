// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrade"
)

// settleEvery is how often it is looked whether there is something to settle.
const settleEvery = 10 * time.Second

// settle what an upgrade leaves to do, once this member leads: extensions are brought to the version that comes with the server, and
// statistics computed, without which queries are planned badly. It serves meanwhile. In the end the copy goes.
func (m *member) settle(ctx context.Context) error {
	for {
		if m.leads.Load() {
			s, left, err := upgrade.Left()
			if err == nil && !left {
				return nil // nothing can come any more
			}
			if err == nil && s.Stage == upgrade.Settling {
				err = m.settleOnce(ctx, s)
			}
			if err != nil {
				m.log.Warn("cannot settle the upgrade", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settleEvery):
		}
	}
}

// settleOnce does all of it.
func (m *member) settleOnce(ctx context.Context, s upgrade.State) error {
	tell := func(phase, message string) error {
		r := members.UpgradeReport{ID: s.ID, Phase: phase, Message: message}
		m.log.Info("upgrade", "phase", phase, "message", message)
		return m.pods.Annotate(ctx, members.AnnotationUpgrade, r)
	}
	if err := tell(members.UpgradeSettling, ""); err != nil {
		return err
	}
	begun := time.Now()
	// One that does not want to is named, and serves in its former version.
	stuck, err := managed.UpdateExtensions(ctx, layout.Postgres)
	if err != nil {
		return err
	}
	said, err := m.table.Run(ctx, layout.Volume, layout.Programs(m.Version)+"/vacuumdb", vacuum(m.Version)...)
	if err != nil {
		return fmt.Errorf("cannot compute statistics: %w: %s", err, said)
	}
	if err := upgrade.Discard(); err != nil {
		return err
	}
	m.log.Info("settled", "took", time.Since(begun).Round(time.Millisecond).String())
	if err := tell(members.UpgradeDone, stuck); err != nil {
		return err
	}
	return upgrade.Forget()
}

// vacuum are the arguments that compute statistics: rough ones first, so that no table is without for long. From 18 on statistics come
// along, but for those that somebody defined.
func vacuum(major string) []string {
	args := []string{"--host=" + layout.Postgres, "--username=" + managed.Owner, "--no-password", "--all", "--analyze-in-stages", "--jobs=2"}
	if major >= "18" {
		args = append(args, "--missing-stats-only")
	}
	return args
}
