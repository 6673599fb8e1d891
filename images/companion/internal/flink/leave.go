// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/images/companion/internal/flink/rest"
)

const (
	// maxTries is how often a savepoint may fail until the last checkpoint has to serve.
	maxTries = 3
	// tryEvery is the time between two tries, and between two questions.
	tryEvery = 500 * time.Millisecond
	// stopsWithin is how long Flink may take to end after its savepoint.
	stopsWithin = 10 * time.Second
)

// leave because the pod has to go: with a savepoint, or with the last checkpoint when there is no savepoint to be had. The record says which.
func (m *jobManager) leave(java *child) {
	m.report.phase(flink.PhaseStopping)
	within := time.Duration(m.Plan.SavepointSeconds) * time.Second
	// The context of the program has ended already.
	ctx, done := context.WithTimeout(context.Background(), within)
	defer done()
	stop := &flink.Stop{Revision: m.Plan.Revision}
	saved, err := m.stop(ctx, java)
	stop.At = time.Now().UTC()
	if err != nil {
		stop.Error = shorten(err.Error())
		m.Log.Error("there is no savepoint, and the last checkpoint serves in its place", "error", err)
		java.end(endWithin)
	} else {
		stop.Savepoint = saved
		m.record.Known = saved
		m.Log.Info("the job has stopped with a savepoint", "path", saved.Path, "id", saved.ID)
		select {
		case <-java.Ended():
		case <-time.After(stopsWithin):
		}
		java.end(endWithin)
	}
	m.record.LastStop = stop
	if err := m.folder.Keep(m.record); err != nil {
		m.Log.Error("cannot remember how the stream stopped", "error", err)
	}
	m.report.lastStop(stop)
	m.report.savepoint(stop.Savepoint)
}

// errNothingNew is why no savepoint is tried.
var errNothingNew = errors.New("no task ran since the start, so that the state it started from serves")

// stop the job with a savepoint that is complete in the state folder.
func (m *jobManager) stop(ctx context.Context, java *child) (*flink.Saved, error) {
	var last error
	for failed := 0; failed < maxTries; {
		job, err := m.rest.Job(ctx)
		switch {
		case ctx.Err() != nil, java.Gone():
			return m.completeSavepoint(last)
		case err != nil || !job.AllRun():
			// A job that never ran has nothing to save. Another one may run again in time.
			if !m.report.ran() {
				return nil, errNothingNew
			}
			if last == nil {
				last = errors.New("the job does not run")
			}
		default:
			if last = m.takeSavepoint(ctx, java); last == nil {
				return m.completeSavepoint(nil)
			}
			failed++
			m.Log.Error("a savepoint failed", "error", last)
		}
		wait(ctx, tryEvery)
	}
	return m.completeSavepoint(last)
}

// takeSavepoint once.
func (m *jobManager) takeSavepoint(ctx context.Context, java *child) error {
	id, err := m.rest.Stop(ctx, scheme+m.Plan.Savepoints())
	if err != nil {
		return err
	}
	for {
		done, _, why, err := m.rest.Savepoint(ctx, id)
		switch {
		case done && why != "":
			return errors.New(why)
		case done, java.Gone():
			return nil
		case errors.Is(err, rest.ErrNoJob):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("it took longer than %d s", m.Plan.SavepointSeconds)
		}
		wait(ctx, tryEvery)
	}
}

// completeSavepoint is the one that is complete now and was not before. What is in the folder counts, not what Flink says: Flink may end before it
// said it.
func (m *jobManager) completeSavepoint(last error) (*flink.Saved, error) {
	all, err := m.folder.Complete(m.Plan.Ignored)
	if err != nil {
		return nil, err
	}
	saved := newestOf(all, func(flink.Saved) bool { return true })
	before := m.newest
	if saved != nil && saved.Savepoint && saved.Revision == m.Plan.Revision && (before == nil || before.Path != saved.Path) {
		return saved, nil
	}
	if last == nil {
		last = errors.New("a savepoint was reported by Flink, and there is no complete one in the state folder")
	}
	return nil, last
}

func shorten(s string) string {
	if len(s) > flink.MaxMessage {
		return s[:flink.MaxMessage]
	}
	return s
}
