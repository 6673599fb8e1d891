// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/images/companion/internal/flink/rest"
)

// A view is what one look at the job saw.
type view struct {
	job          rest.Job
	checkpoints  rest.Checkpoints
	taskManagers int
	restarts     int
	faultAt      time.Time
	fault        string
	lag          *int64
}

// observe the job. Only its state is needed; the rest may be missing while the job starts.
func observe(ctx context.Context, c *rest.Client) (view, error) {
	job, err := c.Job(ctx)
	if err != nil {
		return view{}, err
	}
	v := view{job: job}
	var failed error
	keep := func(err error) { failed = errors.Join(failed, err) }
	v.checkpoints, err = c.Checkpoints(ctx)
	keep(err)
	v.taskManagers, err = c.TaskManagers(ctx)
	keep(err)
	v.restarts, err = c.Restarts(ctx)
	keep(err)
	v.faultAt, v.fault, err = c.Exception(ctx)
	keep(err)
	lag, known, err := c.Lag(ctx, job)
	keep(err)
	if known {
		v.lag = &lag
	}
	return v, failed
}

// A report is what the companion says of the stream.
type report struct {
	now func() time.Time

	mu sync.Mutex
	s  flink.State
	// processes that ended by themselves; restarts of jobs in earlier processes.
	processes int
	earlier   int
	current   int
	last      rest.JobState
	// everRan is true once all tasks of the present process ran.
	everRan bool
}

func newReport(revision int, now func() time.Time) *report {
	return &report{now: now, s: flink.State{Version: 1, Revision: revision, Phase: flink.PhaseStarting}}
}

func (r *report) with(change func(s *flink.State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.s)
}

func (r *report) state() flink.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.s
}

func (r *report) phase(p flink.Phase)       { r.with(func(s *flink.State) { s.Phase, s.Message = p, "" }) }
func (r *report) lastStop(stop *flink.Stop) { r.with(func(s *flink.State) { s.LastStop = stop }) }
func (r *report) savepoint(saved *flink.Saved) {
	r.with(func(s *flink.State) {
		if saved != nil {
			s.Savepoint = saved
		}
	})
}

func (r *report) block(err error) {
	r.with(func(s *flink.State) { s.Phase, s.Message = flink.PhaseBlocked, shorten(err.Error()) })
}

func (r *report) fault(at time.Time, message string) {
	r.with(func(s *flink.State) { s.Fault = &flink.Fault{At: at.UTC(), Message: shorten(message)} })
}

// starting a process from a state.
func (r *report) starting(from *flink.Saved) {
	r.with(func(s *flink.State) {
		s.From, s.RunningSince, s.Message = from, nil, ""
		if s.Phase = flink.PhaseStarting; r.processes > 0 {
			s.Phase = flink.PhaseRestarting
		}
		r.earlier, r.current, r.everRan, r.last = r.earlier+r.current, 0, false, ""
	})
}

// restarting because a process ended by itself.
func (r *report) restarting() {
	r.with(func(s *flink.State) {
		r.processes++
		s.Phase, s.RunningSince, s.Restarts = flink.PhaseRestarting, nil, r.processes+r.earlier+r.current
	})
}

// ran reports whether all tasks of the present process ran once.
func (r *report) ran() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.everRan
}

// job is the last state of the job.
func (r *report) job() rest.JobState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// update by what a look saw.
func (r *report) update(v view) {
	r.with(func(s *flink.State) {
		r.last = v.job.State
		r.current = max(r.current, v.restarts)
		s.Restarts = r.processes + r.earlier + r.current
		s.TaskManagers, s.Lag, s.Parallelism = v.taskManagers, v.lag, 0
		for _, vertex := range v.job.Vertices {
			s.Parallelism = max(s.Parallelism, vertex.Parallelism)
		}
		switch {
		case v.job.AllRun():
			if s.RunningSince == nil {
				now := r.now().UTC()
				s.RunningSince = &now
			}
			s.Phase, r.everRan = flink.PhaseRunning, true
		case r.everRan || s.Restarts > 0:
			s.Phase, s.RunningSince = flink.PhaseRestarting, nil
		default:
			s.Phase, s.RunningSince = flink.PhaseStarting, nil
		}
		if v.fault != "" && (s.Fault == nil || v.faultAt.After(s.Fault.At)) {
			s.Fault = &flink.Fault{At: v.faultAt, Message: shorten(v.fault)}
		}
		latest := v.checkpoints.Latest
		if c := latest.Completed; c != nil && (s.Checkpoint == nil || c.ID >= s.Checkpoint.ID) {
			s.Checkpoint = &flink.Checkpoint{ID: c.ID, At: time.UnixMilli(c.LatestAck).UTC(), Bytes: c.StateSize, Millis: c.EndToEndMillis}
		}
		s.CheckpointFault = ""
		if f := latest.Failed; f != nil && (latest.Completed == nil || f.ID > latest.Completed.ID) {
			if s.CheckpointFault = shorten(rest.Cause(f.FailureMessage)); s.CheckpointFault == "" {
				s.CheckpointFault = fmt.Sprintf("checkpoint %d failed", f.ID)
			}
		}
	})
}

// message at the end, for people.
func (r *report) message() []byte {
	s := r.state()
	switch {
	case s.LastStop == nil || s.LastStop.Revision != s.Revision:
		return []byte("stopped before Flink ran")
	case s.LastStop.Savepoint != nil:
		return []byte("stopped with savepoint " + s.LastStop.Savepoint.Path)
	}
	return []byte("stopped without a savepoint: " + s.LastStop.Error)
}

// handler answers with the state.
func (r *report) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+flink.StatePath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.state())
	})
	mux.HandleFunc("GET "+flink.MetricsPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte(metrics(r.state())))
	})
	return mux
}

// metrics in the text format of Prometheus.
func metrics(s flink.State) string {
	var out strings.Builder
	gauge := func(name, help string, value any) {
		fmt.Fprintf(&out, "# HELP capstan_stream_%[1]s %[2]s\n# TYPE capstan_stream_%[1]s gauge\ncapstan_stream_%[1]s %[3]v\n", name, help, value)
	}
	running := 0
	if s.Phase == flink.PhaseRunning {
		running = 1
	}
	gauge("running", "1 while all tasks run.", running)
	gauge("restarts", "How often this revision restarted.", s.Restarts)
	gauge("parallelism", "The highest parallelism of an operator.", s.Parallelism)
	gauge("taskmanagers", "TaskManagers that are registered.", s.TaskManagers)
	if c := s.Checkpoint; c != nil {
		gauge("checkpoint_completed_timestamp_seconds", "When the newest checkpoint became complete.", c.At.Unix())
		gauge("checkpoint_size_bytes", "State of the newest checkpoint.", c.Bytes)
		gauge("checkpoint_duration_seconds", "Time that the newest checkpoint took.", float64(c.Millis)/1000)
	}
	if s.Lag != nil {
		gauge("lag_records", "Records that sources have not read yet.", *s.Lag)
	}
	return out.String()
}
