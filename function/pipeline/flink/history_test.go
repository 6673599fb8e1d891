// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/function/pipeline/flink/names"
)

// TestHistories runs random histories. In each of them no state that a working revision saved is lost: a JobManager never starts from less
// than the newest state of a revision that was not rolled back. What was rolled back is never used again, revisions only grow, a revision
// that completed a checkpoint is never taken back, and the claim, the pods and the stable spec are never dropped.
func TestHistories(t *testing.T) {
	t.Parallel()
	histories := 10
	if testing.Short() {
		histories = 5
	}
	for seed := range histories {
		history(t, uint64(seed))
	}
}

func history(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 22))
	w := newWorld(t, usualSpec)
	w.broken["bad-0"], w.broken["bad-1"] = true, true
	var log []string
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("seed %d: %s after %v", seed, fmt.Sprintf(format, args...), log)
	}
	highest, statusLost := 0, false
	for range 60 {
		event := []string{"run", "run", "run", "time", "edit", "bad edit", "invalid", "valid", "suspend", "resume", "crash", "JobManager dies", "status lost", "Service lost"}[r.IntN(14)]
		log = append(log, event)
		crash := false
		switch event {
		case "run":
			w.run(time.Duration(r.IntN(300)) * time.Second)
		case "time":
			w.now = w.now.Add(time.Duration(r.IntN(1200)) * time.Second)
		case "edit":
			w.edit(fmt.Sprintf(`{image: good-%d}`, r.IntN(3)))
		case "bad edit":
			w.edit(fmt.Sprintf(`{image: bad-%d}`, r.IntN(2)))
		case "invalid":
			w.edit(`{concurrency: nonsense}`)
		case "valid":
			w.edit(`{concurrency: Forbid}`)
		case "suspend":
			w.edit(`{suspend: true}`)
		case "resume":
			w.edit(`{suspend: false}`)
		case "crash":
			crash = true
		case "JobManager dies":
			if w.runs != nil {
				w.start(w.runs, w.image)
			}
		case "status lost":
			w.status = nil
		case "Service lost":
			if w.status != nil {
				delete(w.composed, names.Service)
			}
		}
		before, from := w.runs, w.counted
		folder := len(w.folder)
		w.pass(crash)
		statusLost = statusLost || event == "status lost"
		if w.runs != nil && (before == nil || w.runs.Revision != before.Revision) {
			if best := newest(w.folder, w.runs.Ignored); best != nil && w.counted < best.counted {
				fail("revision %d starts from %d, and %d was saved", w.runs.Revision, w.counted, best.counted)
			}
			if before != nil && !slices.Contains(w.runs.Ignored, before.Revision) && w.counted < from && !w.broken[w.image] && len(w.folder) > folder {
				fail("revision %d starts from %d, and the one before it stopped at %d", w.runs.Revision, w.counted, from)
			}
			if w.runs.Revision < highest {
				fail("revision %d follows %d", w.runs.Revision, highest)
			}
			highest = w.runs.Revision
			for _, i := range w.runs.Ignored {
				if w.worked[i] {
					fail("revision %d completed a checkpoint, and was rolled back", i)
				}
			}
		}
		for _, resource := range []string{names.State, names.JobManager, names.TaskManagers} {
			if w.composed[resource] == nil && len(w.folder) > 0 {
				fail("%s is gone", resource)
			}
		}
	}
	// In the end a good spec runs.
	w.edit(`{suspend: false, concurrency: Forbid, image: good-9}`)
	for range 3 {
		w.settle()
		w.run(time.Minute)
	}
	w.settle()
	if w.runs == nil || w.image != "good-9" || !w.plan.Ready {
		fail("the last spec does not run: %s in phase %s", w.image, w.phase())
	}
}
