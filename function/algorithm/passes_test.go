// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// A core makes passes as Crossplane 2.4 does: each change of the Algorithm or of what it is composed of wakes one up. A pass writes
// references first, which are part of the spec, then objects, then the status beside the conditions that it began with, and conditions
// last.
type core struct {
	*world

	// behind reports whether a pass that other writes wake up has not seen the conditions that the one before it wrote last. The pass
	// after that has, and late reports which of the two comes next.
	behind, late bool

	// xr is the Algorithm as it is stored, and seen as the next pass sees it.
	xr, seen composetest.Object

	// woken reports whether another pass follows at once, and due is when the next one does otherwise.
	woken bool
	due   time.Time

	// tokens that Crossplane's circuit breaker has, and the fewest that it had: an event takes two for a change, and one for an object that
	// comes or goes. One comes back each second.
	tokens, fewest float64
	counted        time.Time

	// said is what each pass did, for people.
	said []string
}

// store a change of the Algorithm, which wakes up a pass. It reports whether there is one.
func (c *core) store(modify func(xr composetest.Object)) bool {
	c.t.Helper()
	next, err := composetest.Decode(c.xr)
	if err != nil {
		c.t.Fatal(err)
	}
	modify(next)
	if reflect.DeepEqual(next, c.xr) {
		return false
	}
	if metadata := compose.Map(next, "metadata"); !reflect.DeepEqual(next["spec"], c.xr["spec"]) {
		metadata["generation"] = float64(compose.Number(c.xr, 0, "metadata", "generation") + 1)
	}
	compose.Map(next, "metadata")["managedFields"] = []any{map[string]any{"manager": "m", "time": c.request.Now.UTC().Format(time.RFC3339)}}
	c.xr, c.woken = next, true
	c.event(2)
	return true
}

// event that takes tokens.
func (c *core) event(tokens float64) {
	c.tokens = min(100, c.tokens+c.request.Now.Sub(c.counted).Seconds()) - tokens
	c.fewest, c.counted = min(c.fewest, c.tokens), c.request.Now
}

// conditioned status: with conditions in the place of those of their types.
func conditioned(status map[string]any, conditions ...map[string]any) {
	byType := map[string]any{}
	for _, o := range compose.List(status, "conditions") {
		byType[compose.Text(o.(map[string]any), "type")] = o
	}
	for _, o := range conditions {
		byType[compose.Text(o, "type")] = o
	}
	all := []any{}
	for _, ct := range slices.Sorted(maps.Keys(byType)) {
		all = append(all, byType[ct])
	}
	status["conditions"] = all
}

// pass over what is seen.
func (c *core) pass() {
	c.t.Helper()
	began := c.seen
	c.woken, c.request.Composite = false, began
	p := c.plan()
	generation := began.Field("metadata", "generation")
	did := []string{}

	var refs []any
	for _, resource := range slices.Sorted(maps.Keys(p.Objects)) {
		o, err := composetest.Decode(p.Objects[resource].Object)
		if err != nil {
			c.t.Fatal(err)
		}
		refs = append(refs, map[string]any{"apiVersion": o["apiVersion"], "kind": o["kind"], "name": o.Field("metadata", "name")})
	}
	if c.store(func(xr composetest.Object) {
		compose.Map(xr, "spec")["crossplane"] = map[string]any{"resourceRefs": refs}
	}) {
		did = append(did, "references")
	}

	before := maps.Clone(c.request.Observed)
	c.compose(p)
	c.react()
	var touched []string
	for resource, o := range c.request.Observed {
		switch was := before[resource]; {
		case was == nil:
			touched = append(touched, resource)
			c.event(1)
		case !reflect.DeepEqual(bare(c.t, was), bare(c.t, o)):
			touched = append(touched, resource)
			c.event(2)
		}
	}
	for resource := range before {
		if c.request.Observed[resource] == nil {
			c.event(1)
		}
	}
	slices.Sort(touched)
	if len(touched) > 0 {
		c.woken = true
		did = append(did, strings.Join(touched, " "))
	}

	responsive := map[string]any{"type": "Responsive", "status": "True", "reason": "WatchCircuitClosed", "observedGeneration": generation}
	if c.store(func(xr composetest.Object) {
		status, err := composetest.Decode(p.Status)
		if err != nil {
			c.t.Fatal(err)
		}
		status["conditions"] = compose.List(began, "status", "conditions")
		conditioned(status, responsive)
		xr["status"] = map[string]any(status)
	}) {
		did = append(did, "status")
	}
	c.seen = c.xr
	early := c.woken

	if c.store(func(xr composetest.Object) {
		of := func(ct, status, reason string) map[string]any {
			return map[string]any{"type": ct, "status": status, "reason": reason, "observedGeneration": xr.Field("metadata", "generation")}
		}
		ready := of("Ready", "False", "Creating")
		if p.Ready {
			ready = of("Ready", "True", "Available")
		}
		all := []map[string]any{of("Synced", "True", "ReconcileSuccess"), ready}
		for _, o := range p.Conditions {
			all = append(all, map[string]any{"type": string(o.Type), "status": string(o.Status), "reason": string(o.Reason), "message": o.Message})
		}
		conditioned(compose.Map(xr, "status"), all...)
	}) {
		did = append(did, "conditions")
	}
	if c.late = c.behind && early && !c.late; !c.late {
		c.seen = c.xr
	}
	c.due = c.request.Now.Add(p.TTL)
	c.said = append(c.said, fmt.Sprintf("%s %s: %s", c.request.Now.Format("15:04:05"), standsAt(c.t, p), strings.Join(did, ", ")))
	c.request.Now = c.request.Now.Add(200 * time.Millisecond)
}

// react as Kubernetes and the Gateway do at once: pods end, and the route is accepted.
func (c *core) react() {
	c.t.Helper()
	before := maps.Clone(c.request.Observed)
	defer func() {
		for resource, o := range c.request.Observed {
			if !reflect.DeepEqual(bare(c.t, before[resource]), bare(c.t, o)) {
				c.event(2)
			}
		}
	}()
	for _, slot := range names.Slots {
		o := c.request.Observed[names.Deployment(slot)]
		if o == nil || compose.Number(o.Map(), 0, "metadata", "generation") == compose.Number(o.Map(), 0, "status", "observedGeneration") {
			continue
		}
		n := float64(min(compose.Number(o.Map(), 0, "spec", "replicas"), compose.Number(o.Map(), 0, "status", "readyReplicas")))
		c.runIn(slot, func(status map[string]any) {
			status["readyReplicas"], status["availableReplicas"] = n, n
		})
	}
	if o := c.request.Observed[names.Route]; o != nil {
		c.accept()
	}
}

// settle until nothing wakes up another pass.
func (c *core) settle() {
	c.t.Helper()
	for n := 0; c.woken; n++ {
		if n > 20 {
			c.t.Fatalf("it does not come to rest:\n%s", strings.Join(c.said, "\n"))
		}
		c.pass()
	}
}

// happens is a change of others, and what follows from it.
func (c *core) happens(what func()) {
	c.t.Helper()
	what()
	c.event(2)
	c.woken, c.seen, c.late = true, c.xr, false
	c.settle()
}

// serves is one more pod of a slot. A disruption budget that selects it knows first, and Crossplane makes a pass before the Deployment
// does.
func (c *core) serves(slot string, n float64) {
	c.t.Helper()
	if o := c.request.Observed[names.Budget(slot)]; o != nil && compose.TextOf(o, "spec", "selector", "matchLabels", names.LabelIdle) == "" {
		c.happens(func() {
			c.change(names.Budget(slot), func(o composetest.Object) { o["status"] = map[string]any{"currentHealthy": n} })
		})
	}
	c.happens(func() { c.available(slot, n) })
}

// waits until the time that the last pass named, early by a part of it.
func (c *core) waits(early float64) {
	c.t.Helper()
	d := c.due.Sub(c.request.Now)
	c.request.Now = c.request.Now.Add(d - time.Duration(early*float64(d)))
	c.happens(func() {})
}

// ends what an Analysis looks at, with a look that shows nothing against it.
func (c *core) ends() {
	c.t.Helper()
	end, err := time.Parse(time.RFC3339, compose.TextOf(c.request.Observed[names.Analysis], "spec", "forProvider", "metrics", "canary", "decidesAt"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.later(end.Sub(c.request.Now))
	c.happens(func() { c.judge("PPP") })
}

// rolls out another image in a slot, which passes.
func (c *core) rolls(slot, image string) {
	c.t.Helper()
	c.happens(func() { c.store(func(xr composetest.Object) { compose.Map(xr, "spec")["image"] = image }) })
	c.later(3 * time.Second)
	c.serves(slot, 1)
	c.later(time.Second)
	c.serves(slot, 2)
	c.later(15 * time.Second)
	c.happens(func() { c.judge("PPP") })
	for range 3 {
		switch last := c.said[len(c.said)-1]; {
		case strings.Contains(last, "Stable"):
			return
		case strings.Contains(last, "Baking"):
			c.ends()
		default:
			c.waits(0)
		}
	}
}

// TestPasses counts the passes for a whole rollout with one step: each of them has Crossplane write every object.
func TestPasses(t *testing.T) {
	const spec = "{image: %s, replicas: 2, route: {gateway: {name: shared, namespace: gateway}}, " +
		"lifecycle: {canaryWeight: 50, soak: 10s, bake: 1m}}"
	cases := map[string]struct {
		reason string
		behind bool
		// most passes of the first rollout, and again of the next one.
		most, again int
	}{
		"Fresh":  {"Each pass sees what the one before it wrote.", false, 14, 13},
		"Behind": {"A pass that follows at once does not see conditions.", true, 14, 14},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &core{world: serving(t, fmt.Sprintf(spec, "x")), behind: tc.behind}
			xr, err := composetest.Decode(c.request.Composite)
			if err != nil {
				t.Fatal(err)
			}
			c.xr, c.woken = xr, true
			c.seen = xr
			c.settle()
			c.later(time.Hour)
			c.happens(func() {})
			c.said, c.tokens, c.fewest, c.counted = nil, 100, 100, c.request.Now

			c.rolls(names.SlotB, "z")
			t.Logf("%d passes, %.0f tokens at least:\n%s", len(c.said), c.fewest, strings.Join(c.said, "\n"))
			if !strings.Contains(c.said[len(c.said)-1], "Stable") {
				t.Errorf("the rollout should be over")
			}
			if len(c.said) > tc.most {
				t.Errorf("%s want at most %d passes, got %d", tc.reason, tc.most, len(c.said))
			}

			// The next one finds an idle slot.
			c.later(time.Hour)
			c.said, c.tokens, c.fewest, c.counted = nil, 100, 100, c.request.Now
			c.rolls(names.SlotA, "y")
			t.Logf("%d passes, %.0f tokens at least:\n%s", len(c.said), c.fewest, strings.Join(c.said, "\n"))
			if len(c.said) > tc.again {
				t.Errorf("%s want at most %d passes of the next one, got %d", tc.reason, tc.again, len(c.said))
			}
		})
	}
}
