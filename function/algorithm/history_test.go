// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// fields of a spec and what they are edited to. About a third cannot be carried out.
var fields = []struct {
	name   string
	values []string
}{
	{"image", []string{"x", "z:2", "''", "'a b'"}},
	{"replicas", []string{"0", "1", "3", "-1", "null"}},
	{"port", []string{"8080", "9000", "0"}},
	{"config", []string{"null", "{a: '1'}", "{a: '2'}", "{}", "{mountPath: /dev/shm, files: {a: '1'}}"}},
	{"scaling", []string{"null", "{maxReplicas: 3}", "{minReplicas: 2, maxReplicas: 9}", "{minReplicas: 5, maxReplicas: 2}"}},
	{"resources", []string{"null", "{gpu: a.com/b}", "{gpuCount: 1}", "{memory: 512m}", "{sharedMemory: 1Gi}"}},
	{"availability", []string{"null", "{zones: None}", "{zones: Some}", "{maxUnavailable: 50%}"}},
	{"pod", []string{"null", "{nodeSelector: {a: b}}", "{nodeSelector: {a: 'b c'}}", "{serviceAccountName: own}", "{serviceAccountName: A}"}},
	{"env", []string{"null", "[{name: A, value: b}]", "[{name: A}, {name: A}]"}},
}

// events that may happen to an Algorithm, in any order.
var events = []func(w *world, n int){
	// Two of these each, because most of the others mean something only after them.
	edited, edited,
	composedNow, composedNow,
	// All pods serve.
	func(w *world, n int) { withDeployment(w, n, func(slot string) { w.runIn(slot, nil) }) },
	// An update is under way.
	func(w *world, n int) {
		withDeployment(w, n, func(slot string) {
			w.runIn(slot, func(s map[string]any) { s["updatedReplicas"], s["availableReplicas"] = 0.0, float64(n%3) })
		})
	},
	// The autoscaler, or a person, scales.
	func(w *world, n int) { withDeployment(w, 0, func(string) { w.scale(float64(n % 5)) }) },
	// Somebody deletes an object.
	func(w *world, n int) { hide(w, 1<<(n%8)) },
	// Something blocks the pods.
	func(w *world, _ int) {
		if w.request.Observed[names.Analysis] != nil {
			w.find(observev1alpha1.Finding{Reason: "CrashLooping", Message: "it ends"})
		}
	},
	// An object that is asked for is refused.
	func(w *world, n int) {
		objects := slices.Sorted(maps.Keys(w.plan().Objects))
		if len(objects) > 0 {
			w.synced(fmt.Sprintf(`cannot apply composed resource %q: no`, objects[n%len(objects)]), withheldBefore(w))
		}
	},
	func(w *world, n int) { w.request.Now = w.request.Now.Add(time.Duration(n) * time.Second) },
	func(w *world, n int) { withKind(w, compose.Availability(n%3)) },
}

func edited(w *world, n int) {
	f := fields[n%len(fields)]
	spec := maps.Clone(compose.Map(w.request.Composite.Map(), "spec"))
	spec[f.name] = parse(w.t, "x: "+f.values[n/len(fields)%len(f.values)])["x"]
	xr := composetest.Object(maps.Clone(w.request.Composite.Map()))
	xr["spec"] = spec
	w.request.Composite = xr
}

// composedNow without a refusal, so that the status is written.
func composedNow(w *world, _ int) {
	p := w.plan()
	w.compose(p)
	w.synced("", statusOf(p).Withheld)
}

func withDeployment(w *world, n int, do func(slot string)) {
	slot := []string{names.SlotA, names.SlotB}[n%2]
	if w.occupied(slot) {
		do(slot)
	}
}

// FuzzHistory lets things happen to an Algorithm, holds every plan on the way to what must be true of all of them, and expects
// that a good spec and time mend everything.
func FuzzHistory(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 0, 4, 0, 0, 13, 2, 0, 5, 1, 0, 3, 4, 0, 2, 0})
	f.Add([]byte{2, 0, 4, 0, 0, 24, 2, 0, 6, 4, 2, 0, 0, 34, 0, 4, 2, 0, 9, 1, 2, 0, 10, 200})
	f.Add([]byte{9, 0, 9, 1, 9, 2, 2, 0, 7, 1, 8, 0, 4, 0, 11, 2, 2, 0, 7, 3, 7, 2, 2, 0})
	server := composetest.NewServer()
	f.Fuzz(func(t *testing.T, history []byte) {
		w := newWorld(t, "{image: x}")
		w.server = server
		for len(history) >= 2 && len(history) < 80 {
			events[int(history[0])%len(events)](w, int(history[1]))
			history = history[2:]
			hold(t, w, w.plan())
		}
		w.edit(full + "revisionHistoryLimit: 0\n")
		w.synced("", withheldBefore(w))
		withKind(w, compose.Available)
		for range 4 {
			w.later(time.Hour)
			w.compose(w.plan())
			w.update()
		}
		rest(t, w)
		want := 9
		for _, slot := range names.Slots {
			for _, resource := range []string{names.Deployment(slot), names.Budget(slot)} {
				if w.request.Observed[resource] != nil && !w.occupied(slot) {
					want++ // It is idle, and stays for the next revision.
				}
			}
		}
		if n := len(w.request.Observed); n != want {
			t.Errorf("in the end there are %d objects, want %d: %v", n, want, slices.Sorted(maps.Keys(w.request.Observed)))
		}
	})
}
