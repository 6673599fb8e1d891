// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/volume"
)

// measureEvery is how often one looks how full the volume is.
const measureEvery = 15 * time.Second

// measure how full the volume is, and by what. It does not take the server, which a full volume may have stopped.
func (m *member) measure(ctx context.Context) error {
	class, told := "", 0
	complained := ""
	for {
		u, err := volume.Measure(layout.Volume)
		if err == nil {
			class, told = volume.Class(class, u.Percent), volume.Step(told, u.Percent)
			var r members.VolumeReport
			if r, err = m.filled(ctx, u); err == nil {
				r.UsedPercent = int32(told) //nolint:gosec // It is at most 100.
				m.told.disk(class, r)
			}
		}
		if text := fmt.Sprint(err); err != nil && text != complained {
			m.log.Error("cannot measure the volume", "error", err)
			complained = text
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(measureEvery):
		}
	}
}

// filled tells what fills the volume. The server is asked only when its write-ahead log takes more than it should.
func (m *member) filled(ctx context.Context, u volume.Usage) (members.VolumeReport, error) {
	r := members.VolumeReport{FileSystem: fmt.Sprintf("%dMi", u.Size>>20)}
	l, err := volume.MeasureLog(layout.Data)
	if err != nil {
		return r, err
	}
	r.Fill, r.Slot = volume.Fill(u, l, "", 0)
	if r.Fill != members.FillWAL {
		return r, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	// A server that does not answer tells nothing of its slots; the log fills the volume all the same.
	if slot, held, err := managed.HoldingSlot(ctx, layout.Postgres); err == nil {
		r.Fill, r.Slot = volume.Fill(u, l, slot, held)
	}
	return r, nil
}
