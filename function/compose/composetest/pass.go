// SPDX-License-Identifier: Apache-2.0

package composetest

import (
	"encoding/json"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/function/compose"
)

// Ask a planner for a plan without carrying it out. As Crossplane does, it asks until the planner requires the same objects twice. Find
// returns the object that a planner requires, or nil.
func Ask(tb testing.TB, plan func(compose.Request) (*compose.Plan, error), r compose.Request, find func(compose.Requirement) compose.Object) *compose.Plan {
	tb.Helper()
	r.Sought, r.Required = map[string]bool{}, map[string]compose.Object{}
	var required map[string]compose.Requirement
	for range 5 {
		p, err := plan(r)
		if err != nil {
			tb.Fatal(err)
		}
		if reflect.DeepEqual(required, p.Requires) {
			return p
		}
		required, r.Sought, r.Required = p.Requires, map[string]bool{}, map[string]compose.Object{}
		for name, of := range required {
			r.Sought[name] = true
			if o := find(of); o != nil {
				r.Required[name] = o
			}
		}
	}
	tb.Fatal("what the function requires never stays the same, which Crossplane refuses")
	return nil
}

// Status that Crossplane writes by a plan.
func Status(tb testing.TB, p *compose.Plan) map[string]any {
	tb.Helper()
	status, err := compose.AsMap(p.Status)
	if err != nil {
		tb.Fatal(err)
	}
	ready := xpv2.Creating()
	if p.Ready {
		ready = xpv2.Available()
	}
	all := append([]xpv2.Condition{{Type: ready.Type, Status: ready.Status, Reason: ready.Reason}}, p.Conditions...)
	conditions := make([]any, 0, len(all))
	for _, c := range all {
		m := map[string]any{"type": string(c.Type), "status": string(c.Status), "reason": string(c.Reason)}
		if c.Type != xpv2.TypeReady {
			m["message"] = c.Message
		}
		conditions = append(conditions, m)
	}
	status["conditions"] = conditions
	return status
}

// Condition of a plan as status/reason, or nothing.
func Condition(p *compose.Plan, t xpv2.ConditionType) string {
	for _, c := range p.Conditions {
		if c.Type == t {
			return string(c.Status) + "/" + string(c.Reason)
		}
	}
	return ""
}

// Settle passes until nothing changes any more of what state returns.
func Settle(tb testing.TB, state func() any, pass func()) {
	tb.Helper()
	for range 12 {
		before := Encoded(state())
		pass()
		if Encoded(state()) == before {
			return
		}
	}
	tb.Fatal("passes never settle")
}

// Parse a mapping in YAML.
func Parse(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		tb.Fatal(err)
	}
	return m
}

// Encoded as JSON, to compare what was decoded from JSON or YAML.
func Encoded(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // It was decoded.
	}
	return string(raw)
}

// With changes of an object, which stays as it is itself. Maps are merged, except what a provider reports in atProvider, which is replaced.
func With(o compose.Object, changes ...map[string]any) Object {
	out := Object{}
	if err := json.Unmarshal([]byte(Encoded(o.Map())), &out); err != nil {
		panic(err) // It was encoded just now.
	}
	for _, change := range changes {
		overlay(out, change)
	}
	return out
}

func overlay(into, change map[string]any) {
	for k, v := range change {
		below, isMap := v.(map[string]any)
		if at, ok := into[k].(map[string]any); ok && isMap && k != "atProvider" {
			overlay(at, below)
			continue
		}
		into[k] = v
	}
}
