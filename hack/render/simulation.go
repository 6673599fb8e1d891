// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// A simulation is what was observed over time, recorded in simulation.yaml beside xr.yaml. What is composed at one moment is
// observed at the next, with the status that was recorded of it.
type simulation struct {
	Moments []moment `json:"moments"`
}

// A moment is when something changes.
type moment struct {
	// At is the time since the beginning.
	At string `json:"at"`
	// Says what happens, for people.
	Says string `json:"says"`
	// Spec holds the fields of the spec that are edited then.
	Spec map[string]any `json:"spec,omitempty"`
	// Observed status of composed objects by their names within the composition. It stays until another is recorded. A
	// Deployment has as many available replicas as a number says; of its latest spec speaks what names no generation.
	Observed map[string]any `json:"observed,omitempty"`
}

// passesPerMoment that Crossplane makes: a change wakes the composite resource up, and what is reported of it does once more,
// because conditions are written before the rest of the status.
const passesPerMoment = 2

// A stage is what exists at a moment.
type stage struct {
	composite map[string]any
	objects   map[string]map[string]any // by their names within the composition
	recorded  map[string]any
}

// simulate a scenario, and report of each moment where its rollout stands.
func (r *renderer) simulate(ctx context.Context, s scenario) ([]byte, error) {
	var sim simulation
	if err := readYAML(s.simulation, &sim); err != nil {
		return nil, err
	}
	begin, err := time.Parse(time.RFC3339, r.now)
	if err != nil {
		return nil, fmt.Errorf("cannot read --now: %w", err)
	}
	st := stage{objects: map[string]map[string]any{}, recorded: map[string]any{}}
	if err := readYAML(s.xr, &st.composite); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, m := range sim.Moments {
		at, err := time.ParseDuration(m.At)
		if err != nil {
			return nil, fmt.Errorf("cannot read when %q is: %w", m.Says, err)
		}
		maps.Copy(child(st.composite, "spec"), m.Spec)
		maps.Copy(st.recorded, m.Observed)
		for range passesPerMoment {
			if err := r.pass(ctx, s, &st, begin.Add(at)); err != nil {
				return nil, fmt.Errorf("at %s: %w", m.At, err)
			}
		}
		doc, err := yaml.Marshal(st.tell())
		if err != nil {
			return nil, fmt.Errorf("cannot report %s: %w", m.At, err)
		}
		fmt.Fprintf(&out, "---\n# %s: %s\n%s", m.At, m.Says, doc)
	}
	return out.Bytes(), nil
}

// pass renders what is composed of what there is, and makes it what there is.
func (r *renderer) pass(ctx context.Context, s scenario, st *stage, now time.Time) error {
	dir, err := os.MkdirTemp(r.dir, "moment-")
	if err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	s.xr = filepath.Join(dir, "xr.yaml")
	if err := writeYAML(s.xr, st.composite); err != nil {
		return err
	}
	if len(st.objects) > 0 {
		s.observed = filepath.Join(dir, "observed")
		if err := os.Mkdir(s.observed, 0o755); err != nil {
			return fmt.Errorf("cannot make a folder: %w", err)
		}
	}
	for name, o := range st.objects {
		if err := writeYAML(filepath.Join(s.observed, name+".yaml"), st.observed(name, o)); err != nil {
			return err
		}
	}
	rendered, err := r.render(ctx, s, now.Format(time.RFC3339))
	if err != nil {
		return err
	}
	next := map[string]map[string]any{}
	for doc := range strings.SplitSeq(string(rendered), "---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			return fmt.Errorf("cannot read what was rendered: %w", err)
		}
		name, _ := at(o, "metadata", "annotations", "crossplane.io/composition-resource-name").(string)
		switch {
		case o == nil:
		case name == "":
			st.composite["status"] = o["status"]
		default:
			next[name] = counted(st.objects[name], o)
		}
	}
	st.objects = next
	return nil
}

// counted is an object with the generation that its spec has come to.
func counted(before, o map[string]any) map[string]any {
	generation := 1.0
	if g, ok := at(before, "metadata", "generation").(float64); ok {
		generation = g
		if !reflect.DeepEqual(before["spec"], o["spec"]) {
			generation++
		}
	}
	child(o, "metadata")["generation"] = generation
	return o
}

// observed object: with the status that was recorded of it, about its latest spec.
func (st *stage) observed(name string, o map[string]any) map[string]any {
	recorded, ok := st.recorded[name]
	if !ok {
		return o
	}
	generation := at(o, "metadata", "generation")
	out := maps.Clone(o)
	if available, ok := recorded.(float64); ok {
		size, _ := at(o, "spec", "replicas").(float64)
		recorded = map[string]any{
			"replicas": size, "updatedReplicas": size, "readyReplicas": min(available, size), "availableReplicas": min(available, size),
		}
	}
	out["status"] = about(recorded, generation)
	return out
}

// about the latest spec: Deployments report its generation in their status, and Gateways in each condition.
func about(recorded, generation any) any {
	status, _ := copied(recorded).(map[string]any)
	if _, told := status["observedGeneration"]; !told && status["replicas"] != nil {
		status["observedGeneration"] = generation
	}
	parents, _ := status["parents"].([]any)
	for _, p := range parents {
		parent, _ := p.(map[string]any)
		conditions, _ := parent["conditions"].([]any)
		for _, c := range conditions {
			if condition, ok := c.(map[string]any); ok && condition["observedGeneration"] == nil {
				condition["observedGeneration"] = generation
			}
		}
	}
	return status
}

// report where the rollout stands, what the slots run, and who reaches them.
func (st *stage) tell() map[string]any {
	told := map[string]any{}
	if rollout, ok := copied(at(st.composite, "status", "rollout")).(map[string]any); ok {
		delete(rollout, "ledger") // for machines
		told["rollout"] = rollout
	}
	slots, callers := map[string]any{}, map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(st.objects)) {
		o := st.objects[name]
		switch at(o, "kind") {
		case "Deployment":
			containers, _ := at(o, "spec", "template", "spec", "containers").([]any)
			slots[strings.TrimPrefix(name, "deployment-")] = fmt.Sprintf("%v of %v", at(o, "spec", "replicas"), at(containers[0], "image"))
		case "HTTPRoute", "GRPCRoute":
			rules, _ := at(o, "spec", "rules").([]any)
			refs, _ := at(rules[len(rules)-1], "backendRefs").([]any)
			for _, ref := range refs {
				callers[fmt.Sprint(at(ref, "name"))] = at(ref, "weight")
			}
		}
	}
	told["slots"], told["callers"] = slots, callers
	return told
}

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

// copied JSON.
func copied(v any) any {
	raw, _ := json.Marshal(v) //nolint:errchkjson // It was read from YAML.
	var out any
	_ = json.Unmarshal(raw, &out)
	return out
}

func readYAML(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("cannot parse %q: %w", path, err)
	}
	return nil
}

func writeYAML(path string, v any) error {
	data, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot marshal: %w", err)
	}
	return os.WriteFile(path, data, 0o600)
}
