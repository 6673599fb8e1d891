// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pods"
)

// A report is what the member is to tell.
type report struct {
	mu      sync.Mutex
	now     members.Report
	changed wakeup
}

func newReport() *report { return &report{changed: make(wakeup, 1)} }

// change the report, and wake who writes it if it is another.
func (r *report) change(by func(*members.Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.now
	by(&r.now)
	if !reflect.DeepEqual(r.now, before) {
		r.changed.Call()
	}
}

// version of the server.
func (r *report) version(v string) { r.change(func(m *members.Report) { m.Version = v }) }

// disk class of the volume, and how full it is by what.
func (r *report) disk(class string, v members.VolumeReport) {
	r.change(func(m *members.Report) { m.Disk, m.Volume = class, v })
}

// backup: how archive and backups are, and which restore points there are.
func (r *report) backup(b members.BackupReport, points []members.RestorePoint) {
	r.change(func(m *members.Report) { m.Backup, m.RestorePoints = b, points })
}

// hinder: the member does not do what it should.
func (r *report) hinder(reason, message string) {
	r.change(func(m *members.Report) { m.Reason, m.Message = reason, message })
}

// clear a reason, if it is the one that is told; "" clears any but those of a Patroni that does not stay, which only time
// clears, and of a restore, which leading does.
func (r *report) clear(reason string) {
	r.change(func(m *members.Report) {
		if m.Reason == reason || (reason == "" && m.Reason != patroniEnded && m.Reason != restoreFailed) {
			m.Reason, m.Message = "", ""
		}
	})
}

// get the report.
func (r *report) get() members.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// tell writes the report to the pod whenever it changes.
func (m *member) tell(ctx context.Context) error {
	var written *members.Report
	complained := false
	for {
		var retry <-chan time.Time
		err := m.tellOnce(ctx, &written)
		if err != nil {
			if !complained {
				m.log.Warn("cannot tell how the member is, trying on", "error", err)
			}
			retry = time.After(5 * time.Second)
		}
		complained = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-m.told.changed:
		case <-retry:
		}
	}
}

// tellOnce writes the report unless the pod has it.
func (m *member) tellOnce(ctx context.Context, written **members.Report) error {
	ctx, cancel := context.WithTimeout(ctx, 2*pods.Timeout)
	defer cancel()
	if *written == nil {
		before, err := m.pods.Report(ctx)
		if err != nil {
			return err
		}
		*written = &before
	}
	now := m.told.get()
	if reflect.DeepEqual(now, **written) {
		return nil
	}
	if err := m.pods.Annotate(ctx, members.AnnotationReport, now); err != nil {
		return err
	}
	*written = &now
	return nil
}
