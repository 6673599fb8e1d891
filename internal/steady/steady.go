// SPDX-License-Identifier: Apache-2.0

// Package steady finds out where a composite resource ends, without a cluster: it lets Crossplane's passes follow one another, and takes what
// was composed as made and ready, until nothing changes. What "ready" means for each composed kind is in one table (table.go), and what that
// assumes is part of the result. Start reading in this file.
package steady

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

const (
	// mostPasses is how many passes are made at most.
	mostPasses = 100
	// tick is by how much the time continues when nothing changes and the composite resource waits, and mostTicks how often in a row.
	tick      = time.Minute
	mostTicks = 12
)

// A World is a composite resource, and the objects that are composed of it by their names within the composition, all as decoded JSON.
type World struct {
	Now     time.Time
	XR      map[string]any
	Objects map[string]map[string]any
}

// An Answer of a pass: the objects that should exist, and the status of the composite resource with its conditions.
type Answer struct {
	Objects map[string]map[string]any
	Status  map[string]any
}

// A Pass of Crossplane over a world. It changes nothing of it.
type Pass func(ctx context.Context, w World) (Answer, error)

// A Stage is what one pass does. It follows from what the stages before it made.
type Stage struct {
	// After is the time since the beginning that was assumed to pass, for what waits for a time.
	After time.Duration
	// Objects by what happens to them, each as Kind name, sorted.
	Created, Changed, Restarted, Removed []string
}

// A Result is where a composite resource ends.
type Result struct {
	Stages []Stage
	// End is the world in which nothing changes any more.
	End World
	// Ready reports whether the composite resource is then. Waits says for what, if it is not.
	Ready bool
	Waits []string
	// Pause is the expected interruption of writes, in words of the planner, and Effects what the planner said of the edit.
	Pause   string
	Effects []string
	// Assumptions about the kinds that were composed, each in a sentence, sorted.
	Assumptions []string
}

// New composite resource: nothing is composed of it yet, and the API server has given it what every object has.
func New(xr map[string]any, now time.Time) World {
	xr, _ = copied(xr).(map[string]any)
	delete(xr, "status")
	delete(child(xr, "spec"), "crossplane")
	meta := child(xr, "metadata")
	if meta["namespace"] == nil {
		meta["namespace"] = "default"
	}
	meta["generation"], meta["creationTimestamp"], meta["uid"] = 1.0, now.UTC().Format(time.RFC3339), "planned"
	return World{Now: now, XR: xr, Objects: map[string]map[string]any{}}
}

// Edit of a composite resource that exists, with the objects that are observed of it: the spec of a manifest instead of its own. What
// Crossplane keeps in the spec stays.
func Edit(live, manifest map[string]any, objects map[string]map[string]any, now time.Time) (before, after World) {
	before = World{Now: now, XR: live, Objects: objects}
	xr, _ := copied(live).(map[string]any)
	spec, _ := copied(child(manifest, "spec")).(map[string]any)
	if refs := at(live, "spec", "crossplane"); refs != nil {
		spec["crossplane"] = copied(refs)
	}
	xr["spec"] = spec
	meta := child(xr, "metadata")
	for _, field := range []string{"labels", "annotations"} {
		maps.Copy(child(meta, field), child(child(manifest, "metadata"), field))
	}
	if !reflect.DeepEqual(copied(spec), copied(child(live, "spec"))) {
		meta["generation"] = number(meta["generation"]) + 1
	}
	return before, World{Now: now, XR: xr, Objects: objects}
}

// Run passes until nothing changes. The objects desired before are what a pass over the world before an edit answers; nil for a
// new composite resource.
func Run(ctx context.Context, w World, before map[string]map[string]any, pass Pass) (Result, error) {
	r, begin, ticks := Result{}, w.Now, 0
	desired := maps.Clone(before)
	w.Objects = maps.Clone(w.Objects)
	generations := map[string]float64{}
	for name, o := range w.Objects {
		if o["status"] != nil {
			generations[name] = number(at(o, "metadata", "generation"))
		}
	}
	for range mostPasses {
		if err := ctx.Err(); err != nil {
			return r, fmt.Errorf("it did not come to an end in time: %w", err)
		}
		a, err := pass(ctx, w)
		if err != nil {
			return r, err
		}
		st := apply(&w, desired, a.Objects)
		st.After = w.Now.Sub(begin)
		changed := !st.empty() || !same(a.Status, w.XR["status"])
		desired = a.Objects
		w.XR = with(w.XR, a.Status, a.Objects)
		if react(&w, generations, func(string) bool { return true }) {
			changed = true
		}
		if !st.empty() {
			r.Stages = append(r.Stages, st)
		}
		r.note(a.Status)
		switch {
		case changed:
			ticks = 0
		case settled(a.Status) || ticks == mostTicks:
			r.End, r.Ready, r.Waits = w, isTrue(a.Status, "Ready"), waits(a.Status)
			r.Assumptions = assumptions(w)
			return r, nil
		default:
			ticks++
			w.Now = w.Now.Add(tick)
		}
	}
	return r, fmt.Errorf("it does not come to an end within %d passes", mostPasses)
}

// note what the planner says of a change while it is under way.
func (r *Result) note(status map[string]any) {
	change, _ := at(status, "change").(map[string]any)
	if change == nil || r.Effects != nil {
		return
	}
	r.Pause, _ = change["writePause"].(string)
	effects, _ := change["effects"].([]any)
	for _, v := range effects {
		e, _ := v.(map[string]any)
		r.Effects = append(r.Effects, fmt.Sprintf("%v: %v", e["field"], e["effect"]))
	}
	slices.Sort(r.Effects)
}

func (s Stage) empty() bool {
	return len(s.Created)+len(s.Changed)+len(s.Restarted)+len(s.Removed) == 0
}

// apply what is desired, as Crossplane does: what was desired before and is no longer is removed.
func apply(w *World, before, desired map[string]map[string]any) Stage {
	var st Stage
	next := map[string]map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		want, live := desired[name], w.Objects[name]
		switch {
		case live == nil:
			next[name] = added(name, want, w.Now)
			st.Created = append(st.Created, title(want))
		case before[name] != nil && same(want, before[name]), before[name] == nil && within(want, live):
			next[name] = live
		default:
			o := updated(live, before[name], want)
			next[name] = o
			if runs(o) && !same(at(before[name], "spec", "template"), at(want, "spec", "template")) {
				st.Restarted = append(st.Restarted, title(o))
			} else {
				st.Changed = append(st.Changed, title(o))
			}
		}
	}
	for name, o := range w.Objects {
		if next[name] == nil {
			st.Removed = append(st.Removed, title(o))
		}
	}
	for _, all := range [][]string{st.Created, st.Changed, st.Restarted, st.Removed} {
		slices.Sort(all)
	}
	w.Objects = next
	return st
}

// added object, as the API server has it.
func added(name string, want map[string]any, now time.Time) map[string]any {
	o, _ := copied(want).(map[string]any)
	meta := child(o, "metadata")
	meta["generation"], meta["creationTimestamp"], meta["uid"] = 1.0, now.UTC().Format(time.RFC3339), "planned-"+name
	return o
}

// updated object, with the generation that follows from another spec.
func updated(live, before, want map[string]any) map[string]any {
	o, _ := merged(live, before, want).(map[string]any)
	child(o, "metadata")["generation"] = number(at(live, "metadata", "generation"))
	if !same(o["spec"], live["spec"]) {
		child(o, "metadata")["generation"] = number(at(live, "metadata", "generation")) + 1
	}
	return o
}

// StandIns are for objects that exist and cannot be read.
type StandIns struct {
	// Unread objects without a stand-in, and the Taken ones with one, each as Kind name.
	Unread, Taken []string

	// made are the resources that stand in, as they were desired last.
	made map[string]map[string]any
}

// Put into a world what is desired and cannot be read: each is as it is desired, and ready as the table says. It reports whether the world is
// another one than before.
func (s *StandIns) Put(w *World, desired map[string]map[string]any) bool {
	w.Objects = maps.Clone(w.Objects)
	changed := false
	generations := map[string]float64{}
	for name := range s.made {
		generations[name] = number(at(w.Objects[name], "metadata", "generation"))
	}
	next := map[string]map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		want, live := desired[name], w.Objects[name]
		i := slices.Index(s.Unread, title(want))
		switch {
		case s.made[name] != nil:
			if !same(want, s.made[name]) {
				w.Objects[name] = updated(live, s.made[name], want)
				changed = true
			}
		case live == nil && i >= 0:
			w.Objects[name] = added(name, want, w.Now)
			s.Taken = append(s.Taken, s.Unread[i])
			s.Unread = slices.Delete(s.Unread, i, i+1)
			changed = true
		default:
			continue
		}
		next[name] = want
	}
	s.made = next
	return react(w, generations, func(name string) bool { return next[name] != nil }) || changed
}

// runs reports whether an object has pods by a template, which start again when it changes.
func runs(o map[string]any) bool { return o["kind"] == "Deployment" || o["kind"] == "StatefulSet" }

// title of an object.
func title(o map[string]any) string {
	return fmt.Sprintf("%v %v", o["kind"], at(o, "metadata", "name"))
}

// with the status, and with the references that Crossplane writes.
func with(xr, status map[string]any, objects map[string]map[string]any) map[string]any {
	out, _ := copied(xr).(map[string]any)
	out["status"] = copied(status)
	refs := make([]any, 0, len(objects))
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		o := objects[name]
		refs = append(refs, map[string]any{"apiVersion": o["apiVersion"], "kind": o["kind"], "name": at(o, "metadata", "name")})
	}
	child(child(out, "spec"), "crossplane")["resourceRefs"] = refs
	return out
}

// settled reports whether nothing is waited for that time alone could bring.
func settled(status map[string]any) bool {
	if !isTrue(status, "Ready") || at(status, "change") != nil {
		return false
	}
	phase, _ := at(status, "rollout", "phase").(string)
	return phase == "" || phase == "Stable"
}

// waits are the conditions that are not True, with their messages.
func waits(status map[string]any) []string {
	var all []string
	conditions, _ := status["conditions"].([]any)
	for _, v := range conditions {
		c, _ := v.(map[string]any)
		if c["status"] == "False" && c["type"] != "Ready" && c["message"] != nil && c["message"] != "" {
			all = append(all, fmt.Sprintf("%v (%v): %v", c["type"], c["reason"], c["message"]))
		}
	}
	slices.Sort(all)
	return all
}

func isTrue(status map[string]any, kind string) bool {
	conditions, _ := status["conditions"].([]any)
	return slices.ContainsFunc(conditions, func(v any) bool {
		c, _ := v.(map[string]any)
		return c["type"] == kind && c["status"] == "True"
	})
}

// merged is a live value with what is desired now, and without what was desired before only.
func merged(live, before, want any) any {
	l, okL := live.(map[string]any)
	w, okW := want.(map[string]any)
	if !okL || !okW {
		return copied(want)
	}
	b, _ := before.(map[string]any)
	out, _ := copied(l).(map[string]any)
	for k := range b {
		if _, still := w[k]; !still {
			delete(out, k)
		}
	}
	for k, v := range w {
		out[k] = merged(l[k], b[k], v)
	}
	return out
}

// within reports whether a live value has everything that is desired.
func within(want, live any) bool {
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		for k, v := range w {
			ok = ok && within(v, l[k])
		}
		return ok
	case []any:
		l, ok := live.([]any)
		ok = ok && len(l) == len(w)
		for i := 0; ok && i < len(w); i++ {
			ok = within(w[i], l[i])
		}
		return ok
	default:
		return reflect.DeepEqual(want, live)
	}
}

// same JSON.
func same(a, b any) bool { return reflect.DeepEqual(copied(a), copied(b)) }

// at a path of decoded JSON, or nil.
func at(v any, path ...string) any {
	for _, k := range path {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// child of a decoded object, which is made if there is none.
func child(m map[string]any, name string) map[string]any {
	c, ok := m[name].(map[string]any)
	if !ok {
		c = map[string]any{}
		m[name] = c
	}
	return c
}

// number of decoded JSON.
func number(v any) float64 {
	switch n := v.(type) {
	case float64:
		return n
	case int64:
		return float64(n)
	case int:
		return float64(n)
	default:
		return 0
	}
}

// copied JSON. Numbers become what JSON has.
func copied(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil // It was read from JSON.
	}
	var out any
	_ = json.Unmarshal(raw, &out)
	return out
}
