// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/watch"
)

// Handler answers with the state of the run, and with metrics. Without a hub, which members other than the coordinator have not, there
// is no state.
func Handler(h *Hub) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+crew.StatePath, func(w http.ResponseWriter, r *http.Request) {
		if h == nil {
			http.NotFound(w, r)
			return
		}
		raw, err := json.Marshal(h.Snapshot().State)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw)
	})
	mux.HandleFunc("GET "+crew.MetricsPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		if h != nil {
			_, _ = w.Write([]byte(metrics(h.Snapshot(), h.plan.Training, time.Now())))
		}
	})
	return mux
}

// metrics in the text format of Prometheus. Only the coordinator has any, so that nothing is counted twice.
func metrics(s Snapshot, training string, now time.Time) string {
	var b strings.Builder
	labels := fmt.Sprintf("training=%s,run=\"%d\"", strconv.Quote(training), s.State.Run)
	family := func(name, kind, help string) {
		_, _ = fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	value := func(name, more string, v float64) {
		_, _ = fmt.Fprintf(&b, "%s{%s%s} %s\n", name, labels, more, strconv.FormatFloat(v, 'g', -1, 64))
	}
	one := func(name, kind, help string, v float64) {
		family(name, kind, help)
		value(name, "", v)
	}
	state := s.State
	one("capstan_training_attempt", "gauge", "Number of the present or last attempt, from 0.", float64(state.Attempt))
	family("capstan_training_restarts_total", "counter", "Attempts that ended by a fault after which another one began.")
	for _, class := range []crew.Class{crew.ClassInfrastructure, crew.ClassStalled, crew.ClassNonFinite, crew.ClassOutOfMemory, crew.ClassUser} {
		value("capstan_training_restarts_total", fmt.Sprintf(",class=%q", class), float64(s.Restarts[class]))
	}
	family("capstan_training_phase", "gauge", "1 for the phase that the run is in.")
	for _, phase := range []crew.Phase{crew.PhaseGathering, crew.PhaseRunning, crew.PhaseRecovering, crew.PhaseSucceeded, crew.PhaseFailed} {
		v := 0.0
		if state.Phase == phase {
			v = 1
		}
		value("capstan_training_phase", fmt.Sprintf(",phase=%q", phase), v)
	}
	one("capstan_training_step", "gauge", "Furthest step of all ranks.", float64(state.Progress.Step))
	if state.Progress.Of > 0 {
		one("capstan_training_steps", "gauge", "Steps in all.", float64(state.Progress.Of))
	}
	if loss, ok := watch.Number(state.Progress.Loss); ok {
		one("capstan_training_loss", "gauge", "Loss that was reported last.", loss)
	}
	one("capstan_training_steps_per_second", "gauge", "Speed over the last two minutes.", state.Progress.StepsPerSecond)
	one("capstan_training_missing_members", "gauge", "Pods of the run that are not connected.", float64(len(state.Missing)))
	one("capstan_training_attempts_without_progress", "gauge", "Attempts in a row that ended without progress.", float64(state.WithoutProgress))
	one("capstan_training_goodput_ratio", "gauge", "Share of the time since the first attempt that was spent on steps that were kept.", float64(state.GoodputPercent)/100)
	if c := state.Checkpoint; c != nil {
		one("capstan_training_checkpoint_step", "gauge", "Step of the newest complete checkpoint.", float64(c.Step))
		one("capstan_training_checkpoint_age_seconds", "gauge", "Age of the newest complete checkpoint.", max(0, now.Sub(c.At).Seconds()))
	}
	return b.String()
}
