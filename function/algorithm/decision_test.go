// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// scene of the two slots in a plan: what each runs, and where callers go.
func scene(tb testing.TB, p *compose.Plan) string {
	tb.Helper()
	var words []string
	for _, slot := range []string{names.SlotA, names.SlotB} {
		d := object(tb, p, names.Deployment(slot))
		if d == nil {
			continue
		}
		c := compose.List(d, "spec", "template", "spec", "containers")[0].(map[string]any)
		size := "auto"
		if v, ok := compose.Map(d, "spec")["replicas"]; ok {
			size = fmt.Sprint(v)
		}
		words = append(words, fmt.Sprintf("%s=%s*%s", slot, c["image"], size))
	}
	words = append(words, "callers="+compose.Text(object(tb, p, names.Service), "spec", "selector", names.LabelSlot))
	for _, rule := range compose.List(object(tb, p, names.Route), "spec", "rules") {
		for _, b := range compose.List(rule.(map[string]any), "backendRefs") {
			ref := b.(map[string]any)
			words = append(words, fmt.Sprintf("%s:%v", ref["name"], ref["weight"]))
		}
	}
	return strings.Join(words, " ")
}

// accept the route as a Gateway controller does.
func (w *world) accept() {
	resource := names.Route
	if w.request.Observed[resource] == nil {
		resource = names.GRPCRoute
	}
	w.change(resource, func(o composetest.Object) {
		seen := map[string]any{"status": "True", "observedGeneration": compose.Map(o, "metadata")["generation"]}
		accepted, resolved := maps.Clone(seen), maps.Clone(seen)
		accepted["type"], resolved["type"] = "Accepted", "ResolvedRefs"
		o["status"] = map[string]any{"parents": []any{map[string]any{"conditions": []any{accepted, resolved}}}}
	})
}

// stale route: its controller has not seen the latest spec.
func (w *world) stale() {
	w.change(names.Route, func(o composetest.Object) {
		compose.Map(o, "metadata")["generation"] = compose.Map(o, "metadata")["generation"].(float64) + 1
	})
}

// TestMoves of callers from one revision to another.
func TestMoves(t *testing.T) {
	const routed = "{image: x, route: {gateway: {name: shared, namespace: gateway}}}"
	type step struct {
		reason string
		do     func(w *world)
		want   string
		// reason of Updated
		told string
	}
	compose1 := func(w *world) { w.compose(w.plan()) }
	ready := func(slot string) func(w *world) { return func(w *world) { w.runIn(slot, nil) } }
	gone := func(slot string) func(w *world) {
		return func(w *world) { w.compose(w.plan()); w.runIn(slot, nil) }
	}
	both := func(fs ...func(w *world)) func(w *world) {
		return func(w *world) {
			for _, f := range fs {
				f(w)
			}
		}
	}
	edit := func(spec string) func(w *world) { return func(w *world) { w.edit(spec) } }
	later := func(d time.Duration) func(w *world) { return func(w *world) { w.later(d) } }
	cases := map[string]struct {
		spec  string
		steps []step
	}{
		"NewImage": {"{image: x, replicas: 3}", []step{
			{"at rest there is one slot", nil, "a=x*3 callers=a", "Live"},
			{"a new revision starts beside the one that serves", edit("{image: z, replicas: 3}"), "a=x*3 b=z*3 callers=a", "Preparing"},
			{"callers stay while its pods start", compose1, "a=x*3 b=z*3 callers=a", "Preparing"},
			{"callers go over once all of its pods serve", ready("b"), "a=x*3 b=z*3 callers=b", "Live"},
			{"the one before finishes its requests", both(compose1, later(29*time.Second)), "a=x*3 b=z*3 callers=b", "Live"},
			{"and then its pods end", later(time.Second), "a=x*0 b=z*3 callers=b", "Live"},
			{"and when they have, the rest of it goes", gone("a"), "b=z*3 callers=b", "Live"},
			{"and is gone", compose1, "b=z*3 callers=b", "Live"},
			{"and so the other way round", edit("{image: v, replicas: 3}"), "a=v*3 b=z*3 callers=b", "Preparing"},
			{"and so the other way round", both(compose1, ready("a")), "a=v*3 b=z*3 callers=a", "Live"},
		}},
		"EditedAgain": {"{image: x}", []step{
			{"a revision that never served makes room for another", both(edit("{image: v}"), compose1, edit("{image: z}")), "a=x*1 b=v*0 callers=a", "Preparing"},
			{"which takes its place", gone("b"), "a=x*1 b=z*1 callers=a", "Preparing"},
			{"pods of the one before it do not count", compose1, "a=x*1 b=z*1 callers=a", "Preparing"},
			{"pods of its own do", ready("b"), "a=x*1 b=z*1 callers=b", "Live"},
		}},
		"Reverted": {"{image: x}", []step{
			{"back to what serves: the other one goes at once, as it never served", both(edit("{image: v}"), compose1, edit("{image: x}")), "a=x*1 b=v*0 callers=a", "Live"},
			{"and is gone", gone("b"), "a=x*1 callers=a", "Live"},
		}},
		"RevertedWhileDraining": {"{image: x}", []step{
			{"callers have gone over", both(edit("{image: v}"), compose1, ready("b"), compose1), "a=x*1 b=v*1 callers=b", "Live"},
			{"back to the one before, whose pods still serve: callers go back at once", edit("{image: x}"), "a=x*1 b=v*1 callers=a", "Live"},
		}},
		"EditedWhileDraining": {"{image: x}", []step{
			{"callers have gone over", both(edit("{image: v}"), compose1, ready("b"), compose1), "a=x*1 b=v*1 callers=b", "Live"},
			{"the place of the next is taken by what finishes its requests", edit("{image: z}"), "a=x*1 b=v*1 callers=b", "AwaitingDrain"},
			{"and then it ends", later(31 * time.Second), "a=x*0 b=v*1 callers=b", "Preparing"},
			{"and its place is free", gone("a"), "a=z*1 b=v*1 callers=b", "Preparing"},
			{"and callers go over again", both(compose1, ready("a")), "a=z*1 b=v*1 callers=a", "Live"},
		}},
		"NeverServed": {"{image: x}", []step{
			{"what never served makes room", both(func(w *world) {
				*w = *newWorld(t, "{image: x}")
				w.compose(w.plan())
				w.compose(w.plan())
			}, edit("{image: v}")), "a=x*0 callers=a", "Preparing"},
			{"and is replaced where it is", gone("a"), "a=v*1 callers=a", "Preparing"},
			{"and once it serves it is live", both(compose1, ready("a")), "a=v*1 callers=a", "Live"},
		}},
		"Resized": {"{image: x, replicas: 2}", []step{
			{"the size is no part of a revision", edit("{image: x, replicas: 5}"), "a=x*5 callers=a", "Live"},
			{"scaling is not either", edit("{image: x, replicas: 5, scaling: {maxReplicas: 9}}"), "a=x*2 callers=a", "Live"},
			{"nor is a route, or access", edit("{image: x, replicas: 2, access: [], metrics: {}}"), "a=x*2 callers=a", "Live"},
		}},
		"Autoscaled": {"{image: x, scaling: {minReplicas: 2, maxReplicas: 9}}", []step{
			{"a new revision is as large as the autoscaler made the one before", both(func(w *world) { w.scale(6); w.runIn("a", nil) },
				edit("{image: v, scaling: {minReplicas: 2, maxReplicas: 9}}")), "a=x*auto b=v*6 callers=a", "Preparing"},
			{"it keeps its size when callers go over, and so does the one before", both(compose1, ready("b")), "a=x*6 b=v*6 callers=b", "Live"},
		}},
		"Stopped": {"{image: x, replicas: 0}", []step{
			{"nobody is served, so that nobody waits", both(edit("{image: v, replicas: 0}"), compose1, ready("b")), "a=x*0 b=v*0 callers=b", "Live"},
		}},
		"Routed": {routed, []step{
			{"a route that nobody took holds nobody up", nil, "a=x*1 callers=a reco-slot-a:100 reco-slot-b:0", "Live"},
			{
				"callers wait until the Gateway has taken the route", both(func(w *world) { w.accept(); w.stale() }, edit(strings.Replace(routed, "x", "z", 1)), compose1, ready("b")),
				"a=x*1 b=z*1 callers=a reco-slot-a:100 reco-slot-b:0", "AwaitingRoute",
			},
			{"and go over then", func(w *world) { w.accept() }, "a=x*1 b=z*1 callers=b reco-slot-a:0 reco-slot-b:100", "Live"},
			{"pods stay while the Gateway may send requests", both(compose1, later(time.Hour)), "a=x*1 b=z*1 callers=b reco-slot-a:0 reco-slot-b:100", "Live"},
			{"and end once it does not", func(w *world) { w.accept() }, "a=x*0 b=z*1 callers=b reco-slot-a:0 reco-slot-b:100", "Live"},
			{"and the Gateway has nothing more to learn", gone("a"), "b=z*1 callers=b reco-slot-a:0 reco-slot-b:100", "Live"},
		}},
		"ServiceLost": {"{image: x}", []step{
			{"the status knows where callers went", both(edit("{image: v}"), compose1, ready("b"), compose1, ready("b"), func(w *world) {
				w.told(w.plan())
				w.told(w.plan())
				delete(w.request.Observed, names.Service)
			}), "a=x*1 b=v*1 callers=b", "Live"},
		}},
		"AllLost": {"{image: x}", []step{
			{"what serves is what callers had reached", both(edit("{image: v}"), compose1, func(w *world) {
				delete(w.request.Observed, names.Service)
			}), "a=x*1 b=v*1 callers=a", "Preparing"},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, tc.spec)
			for _, s := range tc.steps {
				if s.do != nil {
					s.do(w)
				}
				p := w.plan()
				if diff := cmp.Diff(s.want, scene(t, p)); diff != "" {
					t.Fatalf("%s: -want, +got:\n%s", s.reason, diff)
				}
				if c := condition(p, v1alpha1.TypeUpdated); string(c.Reason) != s.told {
					t.Fatalf("%s: Updated: got %s (%s), want %s", s.reason, c.Reason, c.Message, s.told)
				}
			}
		})
	}
}

// TestHinderedUpdate tells what keeps a revision from serving, and leaves callers where they are.
func TestHinderedUpdate(t *testing.T) {
	w := serving(t, "{image: x}")
	w.told(w.plan())
	w.edit("{image: z}")
	w.compose(w.plan())
	w.runIn(names.SlotB, func(s map[string]any) { s["availableReplicas"], s["readyReplicas"] = 0.0, 0.0 })
	w.find(observev1alpha1.Finding{Reason: "CrashLooping", Message: "the container ends with 1", Slot: "b"})
	p := w.plan()
	if got, want := scene(t, p), "a=x*1 b=z*1 callers=a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c := condition(p, v1alpha1.TypeUpdated)
	if c.Status != "False" || c.Reason != "CrashLooping" || !strings.Contains(c.Message, "the container ends with 1") || !strings.Contains(c.Message, "clients reach revision") {
		t.Errorf("Updated: %s %s %q", c.Status, c.Reason, c.Message)
	}
	if c := condition(p, v1alpha1.TypePodsHealthy); c.Status != "True" || !p.Ready {
		t.Errorf("ready %t, PodsHealthy %s: %s", p.Ready, c.Status, c.Message)
	}
}

// TestPinnedProbes runs pods on with the shorter timeouts of a former version of this function, and renders the next revision
// with those of this one.
func TestPinnedProbes(t *testing.T) {
	w := serving(t, "{image: x}")
	const former = 2.0
	shorten := func(template map[string]any) {
		c := compose.List(template, "spec", "containers")[0].(map[string]any)
		for _, probe := range []string{"readinessProbe", "livenessProbe"} {
			c[probe].(map[string]any)["timeoutSeconds"] = former
		}
	}
	for resource := range w.request.Observed {
		switch {
		case strings.HasPrefix(resource, names.RevisionPrefix):
			w.change(resource, func(o composetest.Object) { shorten(compose.Map(o, "data", "template")) })
		case resource == names.Deployment(names.SlotA):
			w.change(resource, func(o composetest.Object) { shorten(compose.Map(o, "spec", "template")) })
		}
	}
	timeouts := func(slot string) []float64 {
		d := object(t, w.plan(), names.Deployment(slot))
		c := compose.List(d, "spec", "template", "spec", "containers")[0].(map[string]any)
		var seconds []float64
		for _, probe := range []string{"readinessProbe", "livenessProbe"} {
			seconds = append(seconds, c[probe].(map[string]any)["timeoutSeconds"].(float64))
		}
		return seconds
	}
	if diff := cmp.Diff([]float64{former, former}, timeouts(names.SlotA)); diff != "" {
		t.Errorf("an upgrade of the function restarts pods: -want, +got:\n%s", diff)
	}
	w.edit("{image: z}")
	if diff := cmp.Diff([]float64{5, 5}, timeouts(names.SlotB)); diff != "" {
		t.Errorf("a new revision has the probes of before: -want, +got:\n%s", diff)
	}
}

// TestPinned runs a revision as it was rendered first.
func TestPinned(t *testing.T) {
	w := serving(t, "{image: x}")
	before := compose.Map(object(t, w.plan(), names.Deployment(names.SlotA)), "spec", "template")

	// The platform's settings change what would be rendered now, as another version of this function would.
	w.request.Settings.Algorithm.Memory = new(resource.MustParse("8Gi"))
	if diff := cmp.Diff(before, compose.Map(object(t, w.plan(), names.Deployment(names.SlotA)), "spec", "template")); diff != "" {
		t.Errorf("the pods of a pinned revision change: -before, +after:\n%s", diff)
	}

	// Whoever deletes the pinned object does not change the pods either.
	for resource := range w.request.Observed {
		if strings.HasPrefix(resource, names.RevisionPrefix) {
			delete(w.request.Observed, resource)
		}
	}
	p := w.plan()
	if diff := cmp.Diff(before, compose.Map(object(t, p, names.Deployment(names.SlotA)), "spec", "template")); diff != "" {
		t.Errorf("the pods change with the loss of what pins them: -before, +after:\n%s", diff)
	}
	w.compose(p)
	if diff := cmp.Diff(before, compose.Map(object(t, w.plan(), names.Deployment(names.SlotA)), "spec", "template")); diff != "" {
		t.Errorf("what is pinned again is not what ran: -before, +after:\n%s", diff)
	}

	// A new revision has the new settings, and going back finds the old ones.
	w.edit("{image: z}")
	w.update()
	w.later(time.Minute)
	w.update()
	w.edit("{image: x}")
	w.compose(w.plan())
	if diff := cmp.Diff(labelled(before, names.SlotA), compose.Map(object(t, w.plan(), names.Deployment(names.SlotA)), "spec", "template")); diff != "" {
		t.Errorf("going back does not find what ran: -before, +after:\n%s", diff)
	}
}

// TestHistory keeps as many revisions as asked beside the live one.
func TestHistory(t *testing.T) {
	w := serving(t, "{image: x, revisionHistoryLimit: 2}")
	for _, image := range []string{"y1", "y2", "y3", "y4"} {
		w.edit("{image: " + image + ", revisionHistoryLimit: 2}")
		w.update()
		w.later(time.Minute)
		w.update()
	}
	p := w.plan()
	var images []string
	for _, resource := range slices.Sorted(maps.Keys(p.Objects)) {
		if strings.HasPrefix(resource, names.RevisionPrefix) {
			o := object(t, p, resource)
			c := compose.List(o, "data", "template", "spec", "containers")[0].(map[string]any)
			images = append(images, fmt.Sprint(c["image"], " ", o["revision"]))
		}
	}
	slices.Sort(images)
	if diff := cmp.Diff([]string{"y2 3", "y3 4", "y4 5"}, images); diff != "" {
		t.Errorf("revisions: -want, +got:\n%s", diff)
	}
}

// TestEssence names revisions by what reaches the pods, as the user wrote it.
func TestEssence(t *testing.T) {
	target := func(spec string) string { return statusOf(newWorld(t, spec).plan()).Revision.Candidate }
	same := map[string][2]string{
		"defaults mean what leaving them out means": {
			"{image: x}",
			"{image: x, port: 8080, availability: {zones: Preferred, drainSeconds: 30, maxUnavailable: 1}, probes: {startupSeconds: 600}, revisionHistoryLimit: 2}",
		},
		"how many, for whom and how they are watched is no part of it": {
			"{image: x}",
			"{image: x, replicas: 3, scaling: {maxReplicas: 4}, objectives: {successRatio: 0.9}, access: [], route: {gateway: {name: g}}}",
		},
	}
	for reason, specs := range same {
		if a, b := target(specs[0]), target(specs[1]); a != b || a == "" {
			t.Errorf("%s: got %s and %s", reason, a, b)
		}
	}
	seen := map[string]string{}
	for _, spec := range []string{
		"{image: x}", "{image: v}", "{image: x, port: 9000}", "{image: x, args: [a]}", "{image: x, args: [a, b]}", "{image: x, args: ['']}",
		"{image: x, env: [{name: A}]}", "{image: x, env: [{name: A, value: b}]}", "{image: x, config: {a: ''}}",
		"{image: x, secrets: [{name: s}]}", "{image: x, resources: {cpu: 1}}", "{image: x, availability: {drainSeconds: 31}}", "{image: x, pod: {securityContext: {runAsUser: 1}}}",
		"{image: x, model: {uri: s3://bbb/c}}", "{image: x, model: {uri: s3://bbb/c, cache: {resources: {requests: {storage: 1Gi}}}}}",
		"{image: x, probes: {path: /a}}", "{image: x, pod: {nodeSelector: {a: b}}}", "{image: x, pod: {imagePullSecrets: [{name: a}]}}",
	} {
		hash := target(spec)
		if other, ok := seen[hash]; ok {
			t.Errorf("%s and %s are one revision, %q", spec, other, hash)
		}
		seen[hash] = spec
	}
}
