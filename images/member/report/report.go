// SPDX-License-Identifier: Apache-2.0

// Package report keeps the report of a member and writes it to its pod.
package report

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
)

// A Reporter keeps the report of the member and writes it to the pod whenever it changes.
type Reporter struct {
	// Changed wakes the loop of Once.
	Changed loop.Wakeup

	pods *pods.Client
	log  *slog.Logger
	// lasting are the reasons that ClearHold leaves.
	lasting []string

	mu  sync.Mutex
	now members.Report
	// written is what the pod has, once it is known, and failing whether the last try failed. Only Once uses them.
	written *members.Report
	failing bool
}

// New Reporter, which writes through a Client of the member's pod. ClearHold leaves the reasons that are lasting.
func New(own *pods.Client, log *slog.Logger, lasting ...string) *Reporter {
	return &Reporter{pods: own, log: log, lasting: lasting, Changed: loop.NewWakeup()}
}

// Change the report, and wake its loop if it differs.
func (r *Reporter) Change(by func(*members.Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.now
	by(&r.now)
	if !reflect.DeepEqual(r.now, before) {
		r.Changed.Call()
	}
}

// Block reports why the member does not do what it should.
func (r *Reporter) Block(reason, message string) {
	r.Change(func(m *members.Report) { m.Reason, m.Message = reason, message })
}

// Clear a reason, if it is the one that is reported.
func (r *Reporter) Clear(reason string) {
	r.Change(func(m *members.Report) {
		if m.Reason == reason {
			m.Reason, m.Message = "", ""
		}
	})
}

// ClearHold clears any reason that is not lasting: the member is held no longer.
func (r *Reporter) ClearHold() {
	if reason := r.Report().Reason; !slices.Contains(r.lasting, reason) {
		r.Clear(reason)
	}
}

// Report returns the current report.
func (r *Reporter) Report() members.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// Once writes the report if it has changed, and returns the pause before the next try.
func (r *Reporter) Once(ctx context.Context) time.Duration {
	err := r.write(ctx)
	if err != nil && !r.failing {
		r.log.Warn("cannot report how the member is, trying on", "error", err)
	}
	if r.failing = err != nil; r.failing {
		return 5 * time.Second
	}
	return time.Hour // only a change needs another
}

// write the report unless the pod has it.
func (r *Reporter) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*kube.Timeout)
	defer cancel()
	if r.written == nil {
		before, err := r.pods.Report(ctx)
		if err != nil {
			return err
		}
		r.written = &before
	}
	now := r.Report()
	if reflect.DeepEqual(now, *r.written) {
		return nil
	}
	if err := r.pods.Annotate(ctx, members.AnnotationReport, now); err != nil {
		return err
	}
	r.written = &now
	return nil
}
