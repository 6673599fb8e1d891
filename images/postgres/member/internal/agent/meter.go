// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/diverged"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
)

// measureEvery is how often the volume is measured.
const measureEvery = 15 * time.Second

// A Meter reports how full the volume is, and what fills it. It does not need the server, which a full volume may have stopped.
type Meter struct {
	reporter *report.Reporter
	log      *slog.Logger

	class string
	step  int
	last  string
}

// once measures the volume, and returns the pause before the next time.
func (m *Meter) once(ctx context.Context) time.Duration {
	if err := m.measure(ctx); err != nil && err.Error() != m.last {
		m.last = err.Error()
		m.log.Error("cannot measure the volume", "error", err)
	}
	return measureEvery
}

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
	since, err := diverged.Own.Since(time.Now(), m.class)
	if err != nil {
		return err
	}
	if !since.IsZero() {
		r.Diverged = since.Format(time.RFC3339)
	}
	m.reporter.Change(func(report *members.Report) { report.Disk, report.Volume = m.class, r })
	return nil
}
