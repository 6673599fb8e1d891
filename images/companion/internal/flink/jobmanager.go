// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/images/companion/internal/flink/rest"
	"github.com/capstan-dev/capstan/images/companion/internal/flink/states"
	"github.com/capstan-dev/capstan/images/companion/internal/process"
)

const (
	// lookEvery is the time between two looks at the job.
	lookEvery = time.Second
	// folderEvery is the time between two looks at a state folder that does not allow a start.
	folderEvery = 5 * time.Second
)

// A jobManager is the companion of one.
type jobManager struct {
	Config

	keeper *process.Keeper
	folder states.Folder
	rest   *rest.Client
	report *report

	// record as it is in the state folder, and newest is the newest complete state when it was read.
	record flink.Record
	newest *flink.Saved
	// fresh is true once the process that runs now completed a checkpoint.
	fresh bool
}

// RunJobManager until the context ends, which is the request to go. It returns the termination message.
func RunJobManager(ctx context.Context, c Config) ([]byte, error) {
	c = c.withDefaults()
	keeper, err := process.NewKeeper()
	if err != nil {
		return nil, err
	}
	m := &jobManager{
		Config: c, keeper: keeper, folder: states.Folder{Dir: c.Plan.StateDir},
		rest:   rest.New("http://"+net.JoinHostPort(c.Loopback, strconv.Itoa(flink.RestPort)), c.Plan.JobID),
		report: newReport(c.Plan.Revision, time.Now),
	}
	stop, err := process.Serve(ctx, net.JoinHostPort(c.Bind, strconv.Itoa(flink.StatePort)), m.report.handler())
	if err != nil {
		return nil, err
	}
	defer stop()
	var again pause
	for ctx.Err() == nil {
		lived, err := m.once(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errEnded):
			m.Log.Info("the job has ended and is not started again", "phase", m.report.state().Phase)
			<-ctx.Done()
		case err != nil:
			m.Log.Error("cannot start Flink", "error", err)
			m.report.block(err)
			wait(ctx, folderEvery)
		default:
			m.report.restarting()
			wait(ctx, again.after(lived))
		}
	}
	m.report.phase(flink.PhaseStopped)
	return m.report.message(), nil
}

// errEnded reports that the job is not to be started again.
var errEnded = errors.New("the job has ended")

// once starts Flink, and returns when it has ended: how long it ran. It errs when Flink cannot start, and with errEnded when it must not
// start again.
func (m *jobManager) once(ctx context.Context) (time.Duration, error) {
	from, err := m.find()
	if err != nil {
		return 0, err
	}
	cmd, err := m.jobManager(from)
	if err != nil {
		return 0, err
	}
	if from == nil {
		m.Log.Info("Flink starts from the beginning")
	} else {
		m.Log.Info("Flink starts", "from", from.Path, "id", from.ID)
	}
	m.report.starting(from)
	java, err := start(m.keeper, cmd, m.Out)
	if err != nil {
		return 0, fmt.Errorf("cannot start Java: %w", err)
	}
	defer java.end(0)
	m.fresh = false
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			m.leave(java)
			return time.Since(java.began), nil
		case <-java.Ended():
			return time.Since(java.began), m.ended(java)
		case <-tick.C:
			m.look(ctx)
		}
	}
}

// find the state to begin with. Without one the stream begins only if there never was any.
func (m *jobManager) find() (*flink.Saved, error) {
	for _, dir := range []string{m.Plan.Checkpoints(), m.Plan.Savepoints()} {
		if err := os.MkdirAll(dir, 0o770); err != nil { //nolint:gosec // Pods of the group of the volume write there.
			return nil, fmt.Errorf("cannot write to the state folder: %w", err)
		}
	}
	var used bool
	var err error
	if m.record, used, err = m.folder.Record(); err != nil {
		return nil, err
	}
	if owner := m.record.Pipeline; owner != "" && owner != m.Plan.Pipeline {
		return nil, fmt.Errorf("the state folder %s belongs to the Pipeline %s: use another claim, or delete %s there to continue what that Pipeline left",
			m.Plan.StateDir, owner, flink.RecordFile)
	}
	m.report.lastStop(m.record.LastStop)
	if e := m.record.Ended; e != nil && e.Revision == m.Plan.Revision {
		m.report.phase(e.Phase)
		return nil, errEnded
	}
	all, err := m.folder.Complete(m.Plan.Ignored)
	if err != nil {
		return nil, err
	}
	m.newest = newestOf(all, func(flink.Saved) bool { return true })
	m.report.savepoint(newestOf(all, func(s flink.Saved) bool { return s.Savepoint }))
	if m.newest == nil && m.record.Known != nil && m.record.Ended == nil && !slices.Contains(m.Plan.Ignored, m.record.Known.Revision) {
		return nil, fmt.Errorf("the state folder %s has no complete state, but there was one (%s): bring it back, or delete %s there to begin without it",
			m.Plan.StateDir, m.record.Known.Path, flink.RecordFile)
	}
	if m.newest == nil && m.Plan.Continues && !used {
		return nil, fmt.Errorf("the state folder %s is empty, and the revision before had state: bring it there, name its claim in spec.flink.state, or write {} to %s there to begin without it",
			m.Plan.StateDir, flink.RecordFile)
	}
	if m.record.Pipeline == "" {
		m.record.Pipeline = m.Plan.Pipeline
		if err := m.folder.Keep(m.record); err != nil {
			return nil, err
		}
	}
	return m.newest, nil
}

func newestOf(all []flink.Saved, is func(flink.Saved) bool) *flink.Saved {
	for _, s := range slices.Backward(all) {
		if is(s) {
			return &s
		}
	}
	return nil
}

// look at the job. Flink that does not answer is no news: it starts, or its process ends soon.
func (m *jobManager) look(ctx context.Context) {
	seen, err := observe(ctx, m.rest)
	if err != nil {
		return
	}
	m.report.update(seen)
	if completed := seen.checkpoints.Latest.Completed; completed != nil && !m.fresh {
		m.fresh = true
		m.tidy()
	}
}

// tidy up after the first checkpoint: what the stream came from is not needed any more. The record has that there is state.
func (m *jobManager) tidy() {
	all, err := m.folder.Complete(nil)
	if err != nil {
		m.Log.Error("cannot look for old savepoints", "error", err)
		return
	}
	m.record.Known = newestOf(all, func(s flink.Saved) bool { return s.Revision == m.Plan.Revision })
	m.record.Ended = nil
	if err := m.folder.Keep(m.record); err != nil {
		m.Log.Error("cannot remember that there is state", "error", err)
	}
	var stopped *flink.Saved
	if m.record.LastStop != nil {
		stopped = m.record.LastStop.Savepoint
	}
	for _, s := range states.Surplus(all, m.Plan.KeepSavepoints, m.newest, stopped) {
		m.Log.Info("an old savepoint is removed", "path", s.Path)
		if err := m.folder.Remove(s); err != nil {
			m.Log.Error("cannot remove an old savepoint", "error", err)
		}
	}
}

// ended says whether Flink starts again after it ended by itself.
func (m *jobManager) ended(java *child) error {
	phase, code := flink.PhaseFinished, java.code()
	switch last := m.report.job(); {
	case code != 0 || last == rest.Failed || last == rest.Failing:
		m.Log.Error("Flink ended", "code", code)
		why := java.why()
		if why == "" {
			why = "see the log of its pod"
		}
		m.report.fault(time.Now(), fmt.Sprintf("Flink ended with exit code %d: %s", code, why))
		return nil
	case last == rest.Canceled || last == "CANCELLING":
		phase = flink.PhaseCanceled
	}
	m.record.Ended = &flink.Ended{Revision: m.Plan.Revision, Phase: phase, At: time.Now().UTC()}
	m.report.phase(phase)
	if err := m.folder.Keep(m.record); err != nil {
		return err
	}
	return errEnded
}

// wait for a time or the end of the context.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
