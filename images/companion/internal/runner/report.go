// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/apis/runner"
)

// A report is the state of the pod, which is requested while it changes.
type report struct {
	now func() time.Time

	mu    sync.Mutex
	state runner.State
}

func newReport(role string, now func() time.Time) *report {
	return &report{now: now, state: runner.State{Version: runner.PlanVersion, Role: role, Phase: runner.PhaseRunning, Since: stamp(now())}}
}

// change the state.
func (r *report) change(phase runner.Phase, with func(*runner.State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Phase != phase {
		r.state.Phase, r.state.Since = phase, stamp(r.now())
	}
	if with != nil {
		with(&r.state)
	}
}

func (r *report) snapshot() runner.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// handler answers with the state.
func (r *report) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+runner.StatePath, func(w http.ResponseWriter, _ *http.Request) {
		raw, err := json.Marshal(r.snapshot())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw)
	})
	return mux
}

// message of the state for the end of the container: JSON whose lines are cut from their beginning until it fits.
func message(s runner.State) []byte {
	if s.LastFailure != nil {
		f := *s.LastFailure
		s.LastFailure = &f
	}
	for {
		raw, err := json.Marshal(s)
		if err != nil || len(raw) <= runner.MaxMessage || s.LastFailure == nil {
			return raw
		}
		f := s.LastFailure
		over := len(raw) - runner.MaxMessage
		if f.Lines == "" { // JSON writes some characters as six.
			f.Message = strings.ToValidUTF8(f.Message[:max(0, len(f.Message)-over)], "")
			continue
		}
		f.Lines = f.Lines[min(len(f.Lines), max(over/6, 1)):]
		if _, rest, more := strings.Cut(f.Lines, "\n"); more {
			f.Lines = rest
		} else if over > len(f.Lines) {
			f.Lines = ""
		}
		f.Lines = strings.ToValidUTF8(f.Lines, "")
	}
}

func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
