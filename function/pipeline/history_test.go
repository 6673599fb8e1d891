// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/pipeline/names"
)

// An event of a history.
type event struct {
	name   string
	loses  bool
	happen func(w *world, r *rand.Rand)
}

func events(stream bool) []event {
	some := func(w *world, r *rand.Rand) string {
		var all []string
		for resource := range w.Composed {
			if name, ok := strings.CutPrefix(resource, names.JobPrefix); ok {
				all = append(all, name)
			}
		}
		if len(all) == 0 {
			return ""
		}
		slices.Sort(all)
		return all[r.IntN(len(all))]
	}
	ends := func(report, job string) func(w *world, r *rand.Rand) {
		return func(w *world, r *rand.Rand) {
			if name := some(w, r); name != "" && compose.List(w.job(name).Map(), "status", "conditions") == nil {
				w.report(name, report)
				w.kubernetes(name, job)
			}
		}
	}
	all := []event{
		{name: "nothing", happen: func(*world, *rand.Rand) {}},
		{name: "time", happen: func(w *world, r *rand.Rand) { w.now = w.now.Add(time.Duration(r.IntN(7200)) * time.Second) }},
		{name: "pods are gone", happen: func(w *world, _ *rand.Rand) { w.gone() }},
		{name: "a program runs", happen: func(w *world, r *rand.Rand) {
			if name := some(w, r); name != "" && compose.List(w.job(name).Map(), "status", "conditions") == nil {
				w.report(name, `{phase: Running, attempts: 1}`)
			}
		}},
		{name: "a Job completes", happen: ends(`{phase: Succeeded, attempts: 1}`, complete)},
		{name: "a program fails", happen: ends(failedUser, gaveUp)},
		{name: "a program has not enough memory", happen: ends(failedMemory, gaveUp)},
		{name: "a pod is killed", happen: ends(failedKilled, gaveUp)},
		{name: "a Job is deleted", happen: func(w *world, r *rand.Rand) {
			w.settle() // One that nobody has seen yet is made again.
			if name := some(w, r); name != "" {
				delete(w.Composed, jobResource(name))
				delete(w.reports, name)
			}
		}},
		{name: "the status is lost", loses: true, happen: func(w *world, _ *rand.Rand) { w.status = nil }},
		{name: "the Service is lost", loses: true, happen: func(w *world, _ *rand.Rand) { delete(w.Composed, names.Service) }},
		{name: "the provider is new", happen: func(w *world, _ *rand.Rand) { delete(w.Composed, names.History) }},
		{name: "an edit", happen: func(w *world, r *rand.Rand) {
			w.edit(fmt.Sprintf("{args: [features, '%d'], concurrency: %s, deadline: null}", r.IntN(3), []string{"Forbid", "Allow", "Replace"}[r.IntN(3)]))
		}},
		{name: "a bad edit", happen: func(w *world, _ *rand.Rand) { w.edit(`{retry: {rules: [{when: {pattern: "("}, do: Fail}]}}`) }},
		{name: "a good edit", happen: func(w *world, _ *rand.Rand) { w.edit(raising) }},
		{name: "suspend", happen: func(w *world, _ *rand.Rand) { w.edit("{suspend: true}") }},
		{name: "resume", happen: func(w *world, _ *rand.Rand) { w.edit("{suspend: false}") }},
	}
	if stream {
		return all
	}
	return append(all,
		event{name: "a scheduled run", happen: func(w *world, r *rand.Rand) {
			report := []string{`{phase: Succeeded, attempts: 1}`, failedUser, failedMemory, `{phase: Running}`}[r.IntN(4)]
			w.report(fmt.Sprintf("daily-%d", 29393400+w.now.Unix()/60%100000), report)
		}},
		event{name: "scheduled Jobs are tidied up", happen: func(w *world, _ *rand.Rand) {
			for name := range w.reports {
				if w.job(name) == nil {
					delete(w.reports, name)
				}
			}
		}},
		event{name: "another run", happen: func(w *world, r *rand.Rand) { w.edit(fmt.Sprintf("{run: {id: r%d}}", r.IntN(6))) }},
	)
}

// TestHistories runs random histories. In each of them:
//   - a Job that exists is never changed,
//   - a Job of a name is made only once, unless the ledger was lost,
//   - a stream starts only when no pod of an earlier start is left,
//   - a spec that is not accepted makes and deletes nothing,
//   - at rest nothing changes,
//   - the status has at most as many runs that ended as it should.
func TestHistories(t *testing.T) {
	for seed := range 6 {
		for name, spec := range map[string]string{"ByID": byIDSpec, "Schedule": cronSpec, "Stream": streamSpec} {
			t.Run(name+strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				randomHistory(t, rand.New(rand.NewPCG(uint64(seed), 22)), spec)
			})
		}
	}
}

func randomHistory(t *testing.T, r *rand.Rand, spec string) {
	t.Helper()
	w := newWorld(t, spec)
	w.edit(raising)
	stream := spec == streamSpec
	happen := events(stream)
	made := map[string]bool{}
	var told []string
	var lost bool
	for range 40 {
		e := happen[r.IntN(len(happen))]
		told = append(told, e.name)
		e.happen(w, r)
		lost = e.loses
		before := map[string]string{}
		for _, name := range w.jobs() {
			if o := w.Composed[jobResource(name)]; o != nil {
				before[name] = composetest.Encoded(o.Map())
			}
		}
		all := w.jobs()
		crash := r.IntN(4) == 0
		w.pass(crash)
		if lost {
			w.settle() // One copy is written again before the other can be lost.
		}
		for _, name := range w.jobs() {
			if o := w.Composed[jobResource(name)]; o != nil && before[name] != "" && composetest.Encoded(o.Map()) != before[name] {
				t.Fatalf("%v: Job %s was changed", told, name)
			}
			if slices.Contains(all, name) {
				continue
			}
			if made[name] {
				t.Fatalf("%v: Job %s was made twice", told, name)
			}
			made[name] = true
			if stream && len(w.jobs()) > len(finished(w))+1 {
				t.Fatalf("%v: there are %v, and some have not ended", told, w.jobs())
			}
		}
		if w.condition(v1alpha1.TypeAccepted) == "False/InvalidSpec" && len(w.jobs()) != len(all) {
			t.Fatalf("%v: a spec that is not accepted changed the Jobs from %v to %v", told, all, w.jobs())
		}
		ended := 0
		for _, run := range compose.List(w.status, "runs") {
			if m, _ := run.(map[string]any); m["endedAt"] != nil {
				ended++
			}
		}
		if ended > usualHistory {
			t.Fatalf("%v: the status has %d runs that ended", told, ended)
		}
	}
	w.settle()
}

// finished Jobs, whose pods have ended.
func finished(w *world) (all []string) {
	for _, name := range w.jobs() {
		if compose.List(w.job(name).Map(), "status", "conditions") != nil && w.Ending[jobResource(name)] == nil {
			all = append(all, name)
		}
	}
	return all
}
