// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/training/names"
)

// An event of a history. What a person asks for lets a Training that has ended begin again.
type event struct {
	name   string
	asks   bool
	loses  bool
	happen func(w *world, r *rand.Rand)
}

func events() []event {
	deleted := func(w *world, _ *rand.Rand) {
		resource, _ := w.currentJob()
		delete(w.Composed, resource)
	}
	return []event{
		{name: "nothing", happen: func(*world, *rand.Rand) {}},
		{name: "time", happen: func(w *world, r *rand.Rand) { w.now = w.now.Add(time.Duration(r.IntN(7200)) * time.Second) }},
		{name: "pods are gone", happen: func(w *world, _ *rand.Rand) { w.Gone() }},
		{name: "pods start", happen: func(w *world, _ *rand.Rand) {
			w.kubernetes(`{status: {startTime: "` + w.now.Format(time.RFC3339) + `"}}`)
			w.report(running)
		}},
		{name: "a member is missing", happen: func(w *world, _ *rand.Rand) {
			w.report(`{phase: Recovering, attempt: 1, missing: [{index: 1, since: "` + w.now.Add(-6*time.Minute).Format(time.RFC3339) + `"}]}`)
		}},
		{name: "the Job completes", happen: func(w *world, _ *rand.Rand) { w.report("{phase: Succeeded}"); w.kubernetes(complete) }},
		{name: "the crew gives up", happen: func(w *world, _ *rand.Rand) { w.report("{phase: Failed, message: wrong}"); w.kubernetes(gaveUp) }},
		{name: "pods are lost", happen: func(w *world, _ *rand.Rand) { w.kubernetes(podsLost) }},
		{name: "the Job is deleted", happen: deleted},
		{name: "the status is lost", loses: true, happen: func(w *world, _ *rand.Rand) { w.status = nil }},
		{name: "the Service is lost", loses: true, happen: func(w *world, _ *rand.Rand) { delete(w.Composed, names.Service) }},
		{name: "an edit", asks: true, happen: func(w *world, r *rand.Rand) { w.edit(fmt.Sprintf("{args: [train, '%d'], watch: null}", r.IntN(3))) }},
		{name: "a bad edit", happen: func(w *world, _ *rand.Rand) { w.edit("{watch: {progress: '('}}") }},
		{name: "a good edit", happen: func(w *world, _ *rand.Rand) { w.edit("{watch: null}") }},
		{name: "suspend", happen: func(w *world, _ *rand.Rand) { w.edit("{suspend: true}") }},
		{name: "resume", happen: func(w *world, _ *rand.Rand) { w.edit("{suspend: false}") }},
		{name: "rerun", asks: true, happen: func(w *world, r *rand.Rand) { w.edit(fmt.Sprintf("{rerun: {id: 'r%d'}}", r.IntN(100))) }},
	}
}

// TestHistories runs random histories. In each of them:
//   - a Job is made only when there is no other, but for the pods of a lost member, whose crew has stopped,
//   - runs are numbered upwards,
//   - a Job that exists is never changed,
//   - what has ended begins again only when a person asks,
//   - a spec that is not accepted makes and deletes nothing,
//   - the claim with the checkpoints is never dropped.
func TestHistories(t *testing.T) {
	histories := 24
	for seed := range histories {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			history(t, rand.New(rand.NewPCG(uint64(seed), 22)))
		})
	}
}

func history(t *testing.T, r *rand.Rand) {
	t.Helper()
	w := newWorld(t, usualSpec)
	var told []string
	highest, asked, seen := int32(0), true, map[int32]bool{}
	all := events()
	for range 60 {
		e := all[r.IntN(len(all))]
		told = append(told, e.name)
		e.happen(w, r)
		asked = asked || e.asks
		crash := r.IntN(8) == 0 && !e.loses // Two records lost at once are more than can be made up for.
		before, jobs, ended := w.Composed, w.Jobs(), w.over()
		for resource := range before {
			seen[names.RunOf(names.JobPrefix, resource)] = true
		}
		w.pass(crash)
		if crash {
			told = append(told, "(crash)")
		}
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("%s\nhistory: %s", fmt.Sprintf(format, args...), strings.Join(told, ", "))
		}
		for resource, o := range w.Composed {
			run := names.RunOf(names.JobPrefix, resource)
			if run == 0 || compose.TextOf(o, "metadata", "deletionTimestamp") != "" {
				continue
			}
			if was := before[resource]; was != nil {
				if diff := cmp.Diff(was.Field("spec"), o.Field("spec")); diff != "" {
					fail("%s was changed:\n%s", resource, diff)
				}
				continue
			}
			lost := strings.Contains(w.ledger(), `"outcome":"Lost"`)
			if len(jobs) > 0 && !lost {
				fail("%s was made beside %v", resource, slices.Collect(keys(jobs)))
			}
			if run < highest || seen[run] {
				fail("%s was made after run %d", resource, highest)
			}
			if ended && !asked {
				fail("%s was made although the Training had ended, and nobody asked", resource)
			}
			highest, asked = run, false
		}
		if w.condition(v1alpha1.TypeAccepted) != "True/Valid" {
			if diff := cmp.Diff(slices.Sorted(keys(before)), slices.Sorted(keys(w.Composed))); diff != "" {
				fail("a bad spec changed objects:\n%s", diff)
			}
		}
		if before[names.Checkpoints] != nil && w.Composed[names.Checkpoints] == nil {
			fail("the claim was dropped")
		}
	}
}

// ledger on the Service.
func (w *world) ledger() string {
	if o := w.Composed[names.Service]; o != nil {
		return compose.TextOf(o, "metadata", "annotations", names.AnnotationLedger)
	}
	return ""
}

// over reports whether the last pass found that the Training had ended.
func (w *world) over() bool {
	if w.plan == nil {
		return false
	}
	c := w.condition(v1alpha1.TypeSucceeded)
	return strings.HasPrefix(c, "True") || strings.HasPrefix(c, "False")
}

func keys(m map[string]compose.Object) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
