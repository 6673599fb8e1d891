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
	"github.com/capstan-dev/capstan/images/postgres/member/internal/walvolume"
)

// measureEvery is how often the volumes are measured.
const measureEvery = 15 * time.Second

// A Meter reports how full the volumes are, and what fills them. It does not need the server, which a full volume may have stopped.
type Meter struct {
	reporter *report.Reporter
	log      *slog.Logger

	// data and wal are what was reported of the volumes last.
	data, wal gauge
	last      string
}

// A gauge is how full a volume was at the last look.
type gauge struct {
	class string
	step  int
}

// read the usage of a volume.
func (g *gauge) read(u volume.Usage) members.VolumeReport {
	g.class, g.step = volume.Class(g.class, u.Percent), volume.Step(g.step, u.Percent)
	return members.VolumeReport{UsedPercent: int32(g.step), FileSystem: fmt.Sprintf("%dMi", u.Size>>20)} //nolint:gosec // It is at most 100.
}

// once measures the volumes, and returns the pause before the next time.
func (m *Meter) once(ctx context.Context) time.Duration {
	if err := m.measure(ctx); err != nil && err.Error() != m.last {
		m.last = err.Error()
		m.log.Error("cannot measure the volumes", "error", err)
	}
	return measureEvery
}

func (m *Meter) measure(ctx context.Context) error {
	u, err := volume.Measure(pgmember.FolderVolume)
	if err != nil {
		return err
	}
	data := m.data.read(u)
	l, err := pgdata.MeasureLog(pgmember.FolderData)
	if err != nil {
		return err
	}
	var wal members.VolumeReport
	if apart, err := walvolume.Own.Apart(); err != nil {
		return err
	} else if apart {
		own, err := volume.Measure(pgmember.FolderWAL)
		if err != nil {
			return err
		}
		wal = m.wal.read(own)
		wal.Fill, wal.Slot = fill(ctx, own, l, true)
		l = pgdata.Log{}
	}
	data.Fill, data.Slot = fill(ctx, u, l, false)
	since, err := diverged.Own.Since(time.Now(), worse(m.data.class, m.wal.class))
	if err != nil {
		return err
	}
	if !since.IsZero() {
		data.Diverged = since.Format(time.RFC3339)
	}
	m.reporter.Change(func(report *members.Report) {
		report.Disk, report.Volume, report.WALDisk, report.WALVolume = m.data.class, data, m.wal.class, wal
	})
	return nil
}

// worse of the classes of two volumes: data that is kept beside its own takes space of both.
func worse(data, wal string) string {
	if data == volume.DiskOk && wal != "" {
		return wal
	}
	return data
}

// fill of a volume that the log is on, alone or beside data.
func fill(ctx context.Context, u volume.Usage, l pgdata.Log, alone bool) (by, slot string) {
	by, slot = pgdata.Fill(u, l, alone, "", 0)
	if by != members.FillWAL {
		return by, slot
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	// The log fills the volume also when the server does not report its slots.
	if name, held, err := managed.HoldingSlot(ctx, pgmember.FolderSocket); err == nil {
		return pgdata.Fill(u, l, alone, name, held)
	}
	return by, slot
}
