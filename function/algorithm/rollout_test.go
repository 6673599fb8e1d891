// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

func TestReplicas(t *testing.T) {
	const scaled = "{image: x, replicas: 5, scaling: {minReplicas: 2, maxReplicas: 4}}"
	cases := map[string]struct {
		reason string
		world  func() *world
		want   any
	}{
		"Fixed":       {"without scaling the spec says how many", func() *world { return newWorld(t, "{image: x, replicas: 3}") }, 3.0},
		"Zero":        {"zero is a number", func() *world { return newWorld(t, "{image: x, replicas: 0}") }, 0.0},
		"FirstAbove":  {"the first size is at most the maximum", func() *world { return newWorld(t, scaled) }, 4.0},
		"FirstBelow":  {"the first size is at least the minimum", func() *world { return newWorld(t, "{image: x, scaling: {minReplicas: 2, maxReplicas: 4}}") }, 2.0},
		"NotYetTaken": {"until the autoscaler owns the number, leaving it out would reset it to one", func() *world { return serving(t, scaled) }, 4.0},
		"Taken": {"the autoscaler owns the number", func() *world {
			w := serving(t, scaled)
			w.scale(3)
			return w
		}, nil},
		"SwitchedOff": {"an autoscaler does nothing at zero, so that it begins with the first size again", func() *world {
			w := serving(t, scaled)
			w.scale(0)
			return w
		}, 4.0},
		"ScalingAdded": {"the size there is remains", func() *world {
			w := serving(t, "{image: x, replicas: 3}")
			w.edit("{image: x, replicas: 1, scaling: {minReplicas: 2, maxReplicas: 9}}")
			return w
		}, 3.0},
		"MinimumRaised": {"until the autoscaler owns the number, the minimum is ours to keep", func() *world {
			w := serving(t, "{image: x, replicas: 3}")
			w.edit("{image: x, scaling: {minReplicas: 7, maxReplicas: 9}}")
			return w
		}, 7.0},
		"ScalingRemoved": {"the number is ours again", func() *world {
			w := serving(t, scaled)
			w.scale(4)
			w.edit("{image: x, replicas: 2}")
			return w
		}, 2.0},
		"ScalingBack": {"once ours again, it is given until the autoscaler takes it again", func() *world {
			w := serving(t, scaled)
			w.scale(4)
			w.edit("{image: x, replicas: 2}")
			w.compose(w.plan())
			w.edit(scaled)
			return w
		}, 2.0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := compose.Map(object(t, tc.world().plan(), names.Deployment(names.SlotA)), "spec")["replicas"]
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nspec.replicas: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHandOver leaves the number to the autoscaler without ever changing it.
func TestHandOver(t *testing.T) {
	w := serving(t, "{image: x, replicas: 3, scaling: {minReplicas: 2, maxReplicas: 9}}")
	w.scale(6)
	for range 2 {
		w.compose(w.plan())
		if n := compose.Number(w.request.Observed[names.Deployment(names.SlotA)].Map(), -1, "spec", "replicas"); n != 6 {
			t.Fatalf("spec.replicas: got %d, want the autoscaler's 6", n)
		}
	}
}

// TestConfigChange keeps each config as long as a revision that is kept uses it.
func TestConfigChange(t *testing.T) {
	lingers(t, names.ConfigPrefix, `config: {a: "1"}`, `config: {a: "2"}`)
}

// lingers fails unless objects whose names within the composition begin with a prefix, which are named by the content of a field,
// stay as long as a revision that is kept uses them.
func lingers(t *testing.T, prefix, before, after string) {
	t.Helper()
	with := func(field string) string { return "{image: x, revisionHistoryLimit: 0, " + field + "}" }
	w := serving(t, with(before))
	for _, step := range []struct {
		reason string
		do     func()
		want   int
	}{
		{"both are there as soon as the spec changes", func() { w.edit(with(after)) }, 2},
		{"both are there while pods of the revision before run", w.update, 2},
		{"the one before goes when its pods are gone", func() { w.later(time.Minute); w.update() }, 1},
		{"nothing comes back", w.update, 1},
		{"going back finds no old one and makes it again", func() { w.edit(with(before)) }, 2},
		{"one that is no longer asked for stays until its pods are gone", func() {
			w.update()
			w.later(time.Minute)
			w.update()
			w.edit("{image: x, revisionHistoryLimit: 0}")
		}, 1},
		{"and then goes", func() { w.update(); w.later(time.Minute); w.update() }, 0},
	} {
		step.do()
		if got := resourcesOf(w.plan(), prefix); len(got) != step.want {
			t.Errorf("%s: got %v, want %d", step.reason, got, step.want)
		}
	}
}

// resourcesOf a plan whose names within the composition begin with a prefix.
func resourcesOf(p *compose.Plan, prefix string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.Objects)), func(n string) bool { return !strings.HasPrefix(n, prefix) })
}

func TestServiceAccountLingers(t *testing.T) {
	w := serving(t, "{image: x, revisionHistoryLimit: 0}")
	w.edit("{image: x, pod: {serviceAccountName: own}, revisionHistoryLimit: 0}")
	for range 2 {
		if w.plan().Objects[names.ServiceAccount].Object == nil {
			t.Error("pods of the revision before lost their ServiceAccount")
		}
		w.update()
	}
	w.later(time.Minute)
	w.update()
	if w.plan().Objects[names.ServiceAccount].Object != nil {
		t.Error("the ServiceAccount stays for ever")
	}
}

// TestRefusedDependency keeps the Deployment as it is when its new config is refused: pods of the new revision could not start.
func TestRefusedDependency(t *testing.T) {
	w := serving(t, "{image: x}")
	w.edit(`{image: z, config: {a: "1"}}`)
	config := ""
	for resource := range w.plan().Objects {
		if strings.HasPrefix(resource, names.ConfigPrefix) {
			config = resource
		}
	}
	refused := `cannot compose resources: cannot apply composed resource "` + config + `": configmaps "reco" is forbidden: exceeded quota`
	w.synced(refused, nil)
	for _, pass := range []string{"the pass that learns of it", "the pass that remembers it"} {
		p := w.plan()
		if p.Objects[config].Object != nil {
			t.Errorf("%s: the refused ConfigMap is asked for", pass)
		}
		d := object(t, p, names.Deployment(names.SlotA))
		if got := compose.List(d, "spec", "template", "spec", "containers")[0].(map[string]any)["image"]; got != "x" {
			t.Errorf("%s: image: got %v, want the one that runs", pass, got)
		}
		if c := condition(p, v1alpha1.TypeComposed); c.Reason != v1alpha1.ReasonRefused || !strings.Contains(c.Message, "exceeded quota") {
			t.Errorf("%s: Composed: got %s %q", pass, c.Reason, c.Message)
		}
		if !p.Ready {
			// One object is missing, so that the Algorithm is not as asked.
			w.compose(p)
		}
		w.synced("", statusOf(p).Withheld)
	}
}

// TestRefusals converges when two objects are refused, whatever order Crossplane applies objects in.
func TestRefusals(t *testing.T) {
	w := newWorld(t, "{image: x, replicas: 2, scaling: {minReplicas: 2, maxReplicas: 4}}")
	refused := []string{names.ComposedAutoscaler(names.SlotA), names.Budget(names.SlotA)}
	for pass := range 6 {
		p := w.plan()

		// Crossplane applies what it comes upon before the refused one, and writes the status only when nothing is refused.
		message := ""
		for _, resource := range refused {
			if p.Objects[resource].Object != nil {
				message = `cannot compose resources: cannot apply composed resource "` + resource + `": x is forbidden: User "crossplane" cannot patch`
			}
		}
		if message != "" {
			w.synced(message, withheldBefore(w))
			continue
		}
		w.compose(p)
		w.synced("", statusOf(p).Withheld)
		w.request.Now = w.request.Now.Add(time.Second)
		if pass == 5 && (len(statusOf(p).Withheld) != 2 || p.Objects[names.Deployment(names.SlotA)].Object == nil) {
			t.Errorf("after six passes: withheld %v", statusOf(p).Withheld)
		}
	}
	w.run(nil)
	p := w.plan()
	if p.Ready || condition(p, v1alpha1.TypePodsHealthy).Reason != v1alpha1.ReasonServing {
		t.Errorf("pods serve and objects are missing: ready %t, healthy %v", p.Ready, condition(p, v1alpha1.TypePodsHealthy))
	}
	if c := condition(p, v1alpha1.TypeComposed); c.Reason != v1alpha1.ReasonNotAllowedToCompose ||
		!strings.Contains(c.Message, "HorizontalPodAutoscaler") || !strings.Contains(c.Message, "package/platform.yaml") {
		t.Errorf("Composed: got %s %q", c.Reason, c.Message)
	}
	if p.TTL > 20*time.Second {
		t.Errorf("TTL: got %s", p.TTL)
	}
	again := statusOf(p).Withheld
	w.request.Now = w.request.Now.Add(5 * time.Second)
	if diff := cmp.Diff(again, statusOf(w.plan()).Withheld); diff != "" {
		t.Errorf("a passing second changes the status: -before, +after:\n%s", diff)
	}
	w.request.Now = w.request.Now.Add(time.Hour)
	w.compose(w.plan())
	w.synced("", nil)
	if p := w.plan(); !p.Ready || condition(p, v1alpha1.TypeComposed).Reason != v1alpha1.ReasonComposed {
		t.Errorf("after the rights came: ready %t, %v", p.Ready, p.Conditions)
	}
}

func withheldBefore(w *world) []v1alpha1.Withheld {
	xr := composetest.Object(w.request.Composite.Map())
	list := compose.List(xr, "status", "withheld")
	ws := make([]v1alpha1.Withheld, 0, len(list))
	for _, v := range list {
		e := v.(map[string]any)
		until, _ := time.Parse(time.RFC3339, e["until"].(string))
		out := v1alpha1.Withheld{Resource: e["resource"].(string), Message: e["message"].(string)}
		out.Until.Time = until
		ws = append(ws, out)
	}
	return ws
}

// TestFirstPodsWait for their ServiceAccount, and for nothing else.
func TestFirstPodsWait(t *testing.T) {
	cases := map[string]struct {
		reason string
		world  func() *world
		want   any
	}{
		"Created": {"Crossplane applies objects in no order.", func() *world { return newWorld(t, "{image: x}") }, true},
		"AccountExists": {"Nothing else is waited for.", func() *world {
			w := newWorld(t, "{image: x}")
			w.compose(w.plan())
			return w
		}, nil},
		"OwnAccount": {"It is not ours to wait for.", func() *world { return newWorld(t, "{image: x, pod: {serviceAccountName: own}}") }, nil},
		"AccountLost": {"Pods that run are not held up.", func() *world {
			w := serving(t, "{image: x}")
			delete(w.request.Observed, names.ServiceAccount)
			return w
		}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := object(t, tc.world().plan(), names.Deployment(names.SlotA))
			if got := compose.Map(d, "spec")["paused"]; got != tc.want {
				t.Errorf("%s\npaused: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestWellStaysWell through edits: a condition that turned around and back would cost several passes of Crossplane and tell
// nobody anything.
func TestWellStaysWell(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*world)
		want   bool
	}{
		"NewImage":  {"Pods of the revision before serve.", func(w *world) { w.edit("{image: z, replicas: 2}") }, true},
		"MorePods":  {"Those there were serve.", func(w *world) { w.edit("{image: x, replicas: 9}") }, true},
		"NewConfig": {"The ConfigMap could not exist yet.", func(w *world) { w.edit(`{image: x, replicas: 2, config: {a: "1"}}`) }, true},
		"NoPods": {"Nobody is served.", func(w *world) {
			w.run(func(status map[string]any) { status["availableReplicas"] = 0.0 })
		}, false},
		"Stalled": {"Missing pods are not on their way.", func(w *world) {
			w.run(func(status map[string]any) {
				status["availableReplicas"] = 1.0
				status["conditions"] = []any{map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}
			})
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, "{image: x, replicas: 2}")
			w.told(w.plan())
			tc.change(w)
			p := w.plan()
			if got := condition(p, v1alpha1.TypePodsHealthy).Status == "True"; got != tc.want || p.Ready != tc.want {
				t.Errorf("%s\nPodsHealthy %t, Ready %t, want both %t", tc.reason, got, p.Ready, tc.want)
			}
		})
	}
}
