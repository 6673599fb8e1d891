// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

const sleeps = "{image: x, route: {host: h, gateway: {name: g}}, scaling: {minReplicas: 0, maxReplicas: 3, signal: CPU}}"

// analysis reports of the provider and of the activator.
func (w *world) reports(idleSince time.Time, requested string) {
	w.change(names.Analysis, func(o composetest.Object) {
		at := maps.Clone(compose.Map(o, "status", "atProvider"))
		if at == nil {
			at = map[string]any{}
		}
		delete(at, "idleSince")
		if !idleSince.IsZero() {
			at["idleSince"] = idleSince.Format(time.RFC3339)
		}
		at["requested"] = requested
		o["status"] = map[string]any{"atProvider": at}
	})
}

// activates reports how many replicas of the activator are available.
func (w *world) activates(available float64) {
	w.change(names.Activator, func(o composetest.Object) { o["status"] = map[string]any{"availableReplicas": available} })
}

// routed is the world after the Gateway has applied the route.
func (w *world) routed() {
	w.change(names.Route, func(o composetest.Object) {
		generation := compose.Number(o, 0, "metadata", "generation")
		o["status"] = map[string]any{"parents": []any{map[string]any{
			"parentRef":  map[string]any{"name": "g"},
			"conditions": []any{map[string]any{"type": "Accepted", "status": "True", "observedGeneration": float64(generation)}},
		}}}
	})
}

// path of requests: what the Service selects, whether the activator may reach replicas, the backends of the route with a weight, the replicas of the live slot, and what
// the Algorithm tells.
func (w *world) path(p *compose.Plan) string {
	w.t.Helper()
	object := func(name string) map[string]any {
		o, err := compose.AsMap(p.Objects[name].Object)
		if err != nil {
			w.t.Fatal(err)
		}
		return o
	}
	to := "pods"
	if compose.Text(object(names.Service), "spec", "selector", names.LabelActivator) != "" {
		to = "activator"
	}
	if len(compose.Map(object(names.AwakeService), "spec", "selector")) > 2 {
		to += " (closed)"
	}
	var weights []string
	for _, r := range compose.List(object(names.Route), "spec", "rules") {
		rule, _ := r.(map[string]any)
		for _, v := range compose.List(rule, "backendRefs") {
			b, _ := v.(map[string]any)
			if compose.Number(b, 0, "weight") > 0 {
				weights = append(weights, compose.Text(b, "name"))
			}
		}
	}
	slices.Sort(weights)
	size := "as it is"
	if _, given := compose.Map(object(names.Deployment(names.SlotA)), "spec")["replicas"]; given {
		size = strconv.FormatInt(compose.Number(object(names.Deployment(names.SlotA)), -1, "spec", "replicas"), 10)
	}
	asleep := "-"
	for _, c := range p.Conditions {
		if c.Type == v1alpha1.TypeAsleep {
			asleep = string(c.Reason)
		}
	}
	return fmt.Sprintf("%s, %s, %s; %s, ready %t", to, strings.Join(weights, "+"), size, asleep, p.Ready)
}

// TestSleep shows the path of requests while an Algorithm falls asleep and wakes: there is always something that takes them, and
// each step that could lose one waits for what it depends on.
func TestSleep(t *testing.T) {
	const (
		direct = "pods, reco-slot-a, 1; "
		drowsy = "activator, reco, 1; Awake, ready true"
		asleep = "activator (closed), reco, 0; Asleep, ready true"
		waking = "activator (closed), reco, 1; StartingUp, ready true"
	)
	w := serving(t, sleeps)
	w.routed()
	idle := now
	steps := []struct {
		reason string
		do     func()
		want   string
	}{
		{"Without an activator it does not sleep.", func() { w.reports(idle, "r1"); w.later(time.Hour) }, direct + "ScaleToZeroUnavailable, ready true"},
		{"With one it is in use until it was idle for long enough since then.", func() { w.activates(2); w.reports(time.Time{}, "r1"); w.routed() }, direct + "Awake, ready true"},
		{"Once it is idle, requests go through the activator.", func() { w.reports(idle, "r1"); w.later(time.Hour) }, drowsy},
		{"Replicas run until the Gateway has followed.", func() { w.later(time.Minute) }, drowsy},
		{"And then end.", func() { w.routed() }, asleep},
		{"It stays asleep without evidence.", func() { w.run(nil); w.reports(time.Time{}, "r1"); w.later(time.Hour) }, asleep},
		{"A request wakes it.", func() { w.reports(time.Time{}, "r2") }, waking},
		{"It is held until a replica serves.", func() {
			w.run(func(st map[string]any) { st["availableReplicas"], st["readyReplicas"] = 0.0, 0.0 })
			w.later(time.Hour)
		}, waking},
		{"Then requests reach it directly.", func() { w.run(nil) }, direct + "Awake, ready true"},
		{"Evidence of before counts for nothing.", func() { w.reports(idle, "r2"); w.later(time.Minute) }, direct + "Awake, ready true"},
		{"It falls asleep again.", func() { w.later(time.Hour) }, drowsy},
		{"A request keeps it awake.", func() { w.routed(); w.later(time.Minute); w.reports(idle, "r3") }, direct + "Awake, ready true"},
		{"Again.", func() { w.later(time.Hour) }, drowsy},
		{"And asleep.", func() { w.routed(); w.later(time.Hour) }, asleep},
		{"A lost activator wakes it.", func() { w.run(nil); w.activates(0) }, waking},
		{"It sleeps no more without one.", func() { w.run(nil) }, direct + "ScaleToZeroUnavailable, ready true"},
		{"Again asleep.", func() {
			w.activates(2)
			for range 3 {
				w.later(time.Hour)
				w.compose(w.plan())
				w.routed()
			}
			w.run(nil)
		}, asleep},
		{"A spec that is refused does not keep requests waiting.", func() {
			w.edit(strings.Replace(sleeps, "maxReplicas: 3", "maxReplicas: 3, perReplica: 5", 1))
			w.reports(time.Time{}, "r4")
		}, "activator (closed), reco, 1; Asleep, ready true"},
		{"It serves as before.", func() { w.run(nil) }, direct + "Asleep, ready true"},
	}
	for _, s := range steps {
		s.do()
		p := w.plan()
		objects, _, _ := strings.Cut(w.path(p), ";")
		w.compose(p)
		// Conditions follow in the pass after the one that changes objects.
		p = w.plan()
		_, told, _ := strings.Cut(w.path(p), ";")
		if diff := cmp.Diff(s.want, objects+";"+told); diff != "" {
			t.Errorf("%s -want, +got:\n%s", s.reason, diff)
		}
		w.told(p)
		st, err := composetest.Decode(w.plan().Status)
		if err != nil {
			t.Fatal(err)
		}
		want := "Ready"
		switch s.want {
		case asleep:
			want = "Asleep"
		case waking:
			want = "Progressing"
		}
		if phase := compose.Text(st, "phase"); phase != want && !strings.HasPrefix(s.reason, "A spec") {
			t.Errorf("%s want phase %s, got %s", s.reason, want, phase)
		}
	}
}

// TestSleepEnds shows that requests wait for no replica when the spec wants none.
func TestSleepEnds(t *testing.T) {
	w := serving(t, sleeps)
	w.activates(2)
	for range 5 {
		w.reports(now, "r1")
		w.later(time.Hour)
		w.compose(w.plan())
		w.routed()
		w.run(nil)
	}
	w.edit(strings.Replace(sleeps, "image: x", "image: x, replicas: 0", 1))
	for range 2 {
		p := w.plan()
		w.compose(p)
		w.told(p)
	}
	p := w.plan()
	if got := compose.Text(w.request.Observed[names.Service].Map(), "spec", "selector", names.LabelActivator); got != "" {
		t.Errorf("requests should not reach the activator %q", got)
	}
	st, err := composetest.Decode(p.Status)
	if err != nil {
		t.Fatal(err)
	}
	if phase := compose.Text(st, "phase"); phase != string(v1alpha1.PhaseStopped) {
		t.Errorf("want phase Stopped, got %s", phase)
	}
	if _, ok := p.Objects[names.Activator]; ok {
		t.Error("the activator should be gone")
	}
}

// TestRolloutWakes shows that an edit of an Algorithm that is asleep reaches clients.
func TestRolloutWakes(t *testing.T) {
	for name, lifecycle := range map[string]string{"AtOnce": "", "Canary": ", lifecycle: {}"} {
		t.Run(name, func(t *testing.T) {
			spec := strings.TrimSuffix(sleeps, "}") + lifecycle + "}"
			w := serving(t, spec)
			w.activates(2)
			for range 5 {
				w.reports(now, "r1")
				w.later(time.Hour)
				w.compose(w.plan())
				w.routed()
				w.run(nil)
			}
			if got := w.path(w.plan()); !strings.HasPrefix(got, "activator (closed), reco, 0; Asleep") {
				t.Fatalf("it should sleep: %s", got)
			}
			w.edit(strings.Replace(spec, "image: x", "image: z", 1))
			p := w.plan()
			if got := w.path(p); !strings.HasPrefix(got, "activator (closed), reco, 1;") {
				t.Fatalf("an edit should wake it: %s %v", got, p.Conditions)
			}
			if _, ok := p.Objects[names.Deployment(names.SlotB)]; !ok {
				t.Error("the new revision should start beside it")
			}
			w.compose(p)
			w.run(nil)
			w.runIn(names.SlotB, nil)
			if got := w.path(w.plan()); !strings.HasPrefix(got, "pods, ") {
				t.Errorf("requests should reach replicas: %s", got)
			}
		})
	}
}
