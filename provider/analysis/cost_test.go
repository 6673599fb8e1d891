// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	planner "github.com/capstan-dev/capstan/function/algorithm"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/experiment"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// A cluster is what a function, an Analysis and Crossplane do to the API server for one Algorithm, by a clock of its own. Each event
// has a moment of its own, so that none saves a pass by coming together with another one.
type cluster struct {
	*stand

	prom    *prom
	server  *composetest.Server
	request compose.Request
	random  *rand.Rand
	// due are what controllers do later.
	due []later
	// takes is the time of a pass. What happens meanwhile wakes one more pass, however much it is. At 0 every event has a pass of its own.
	takes time.Duration
	// again is when Crossplane looks by itself, and polled when the provider does.
	again, polled time.Time
	woken         bool
	generation    float64
	// passes of Crossplane, writes of Crossplane and the provider, and how many of them changed the status or the conditions of the
	// Algorithm.
	passes, writes, statuses int
	phases                   []string
	// breaker of Crossplane, and what it had left at least.
	breaker breaker
	// log of passes.
	log []string
	// trials are Experiments by name, requires what the last plan of the Algorithm required, and missing the images that cannot be
	// pulled.
	trials   map[string]*trial
	requires map[string]compose.Requirement
	missing  string
	// causes of passes.
	causes map[string]int
	cause  string
	// autoscaled is how often an autoscaler has reported its numbers.
	autoscaled int
	// loaded are the Autoscalers that requests reach.
	loaded map[string]bool
}

// A breaker is Crossplane's: events of an Algorithm and of its objects take tokens, and without one Crossplane stops listening.
type breaker struct {
	tokens, least float64
	at            time.Time
}

// The defaults of Crossplane's flags, by the second, and what a change takes: Crossplane counts the object before and after it.
const (
	burst, refill = 100, 1
	perChange     = 2
)

// take the tokens of a change.
func (b *breaker) take(now time.Time) {
	b.tokens = min(burst, b.tokens+refill*now.Sub(b.at).Seconds()) - perChange
	b.at, b.least = now, min(b.least, b.tokens)
}

// A trial is an Experiment, which composes nothing, and looks at its Algorithm as long as it requires it.
type trial struct {
	xr         composetest.Object
	generation float64
	breaker    breaker
	woken      bool
	again      time.Time
	requires   map[string]compose.Requirement
	passes     int
}

type later struct {
	at time.Time
	do func()
}

func newCluster(t *testing.T, spec string, kinds ...schema.GroupVersionKind) *cluster {
	t.Helper()
	p := &prom{slots: map[string]told{}}
	a := analysisOf("watch", "reco")
	a.UID = "watch"
	pods := []string{"reco-a-1", "reco-a-2", "reco-a-3", "reco-b-1", "reco-b-2", "reco-b-3"}
	c := &cluster{
		stand: newStand(t, p, nil, a), prom: p, server: composetest.NewServer(), random: rand.New(rand.NewPCG(1, 2)),
		request: compose.Request{
			Settings: inputv1alpha1.Settings{Algorithm: inputv1alpha1.AlgorithmSettings{
				CPU: new(resource.MustParse("250m")), Memory: new(resource.MustParse("256Mi")),
				GPU: inputv1alpha1.AlgorithmGPUSettings{CPU: new(resource.MustParse("1")), Memory: new(resource.MustParse("4Gi"))},
			}},
			Kinds: map[schema.GroupVersionKind]compose.Availability{
				v1alpha1.AnalysisGroupVersionKind: compose.Available, planner.RouteGVK: compose.Available,
				planner.ServiceMonitorGVK: compose.Available, planner.PrometheusRuleGVK: compose.Available,
				registryv1alpha1.ModelVersionGroupVersionKind: compose.Available,
			},
			Observed: map[string]compose.Object{},
		},
		causes: map[string]int{}, loaded: map[string]bool{}, trials: map[string]*trial{}, breaker: breaker{tokens: burst, least: burst},
	}
	for _, k := range kinds {
		c.request.Kinds[k] = compose.Available
	}
	for _, name := range pods {
		one := pod(name, slot(name[5:6]), ready)
		if err := c.kube.Create(t.Context(), &one); err != nil {
			t.Fatal(err)
		}
	}
	c.request.Composite = composetest.Object{
		"apiVersion": "capstan.dev/v1alpha1", "kind": "Algorithm", "metadata": map[string]any{"name": "reco", "namespace": "shop"},
	}
	c.edit(spec)
	c.run(30*time.Minute, "")
	c.woken = false
	c.passes, c.writes, c.statuses, c.phases, c.log, c.autoscaled, c.causes = 0, 0, 0, nil, nil, 0, map[string]int{}
	c.breaker.least = burst
	return c
}

// edit the spec.
func (c *cluster) edit(spec string) {
	c.t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(spec), &m); err != nil {
		c.t.Fatal(err)
	}
	c.generation++
	c.rewrite(func(xr composetest.Object) { xr["spec"] = m })
}

// rewrite the Algorithm, which wakes Crossplane.
func (c *cluster) rewrite(change func(composetest.Object)) {
	xr := composetest.Object{}
	maps.Copy(xr, c.request.Composite.Map())
	change(xr)
	xr["metadata"] = map[string]any{
		"name": "reco", "namespace": "shop", "generation": c.generation,
		"managedFields": []any{map[string]any{"time": c.clock.Format(time.RFC3339)}},
	}
	c.request.Composite = xr
	c.wake("the Algorithm")
	for _, t := range c.trials {
		if len(t.requires) > 0 {
			t.breaker.take(c.clock)
			t.woken = true
		}
	}
}

// experiment as a person writes it, which wakes its own controller, and the Algorithm that requires it.
func (c *cluster) experiment(name, spec string) {
	c.t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(spec), &m); err != nil {
		c.t.Fatal(err)
	}
	t := c.trials[name]
	if t == nil {
		t = &trial{breaker: breaker{tokens: burst, least: burst, at: c.clock}}
		c.trials[name] = t
	}
	t.generation++
	c.revise(name, func(xr composetest.Object) { xr["spec"] = m })
}

// revise an Experiment.
func (c *cluster) revise(name string, change func(composetest.Object)) {
	t, xr := c.trials[name], composetest.Object{}
	maps.Copy(xr, t.xr)
	change(xr)
	xr["apiVersion"], xr["kind"] = "capstan.dev/v1alpha1", "Experiment"
	xr["metadata"] = map[string]any{"name": name, "namespace": "shop", "generation": t.generation}
	t.xr, t.woken = xr, true
	t.breaker.take(c.clock)
	for _, r := range c.requires {
		if r.Name == name {
			c.wake("Experiment " + name)
		}
	}
}

// weigh an Experiment: a pass of Crossplane over it.
func (c *cluster) weigh(name string) {
	c.t.Helper()
	t := c.trials[name]
	t.woken = false
	r := compose.Request{Now: c.clock, Composite: t.xr}
	p, err := experiment.Plan(r)
	if err == nil && len(p.Requires) > 0 {
		r.Sought, r.Required = map[string]bool{}, map[string]compose.Object{}
		for resource := range p.Requires {
			r.Sought[resource], r.Required[resource] = true, c.request.Composite
		}
		p, err = experiment.Plan(r)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	t.requires, t.again = p.Requires, c.clock.Add(p.TTL)
	t.passes++
	c.writes += 2
	changed := c.reports(p, t.xr, t.generation, func(change func(composetest.Object)) { c.revise(name, change) })
	c.log = append(c.log, strings.Join(append([]string{c.clock.Format("15:04:05.000"), "  Experiment " + name + ":"}, changed...), " "))
}

// planned is the plan of a pass, with the Experiments that it requires, as Crossplane finds them.
func (c *cluster) planned() *compose.Plan {
	c.t.Helper()
	p, err := planner.Plan(c.request)
	if err == nil && len(p.Requires) > 0 {
		r := c.request
		r.Sought, r.Required = map[string]bool{}, map[string]compose.Object{}
		for resource, asked := range p.Requires {
			r.Sought[resource] = true
			if t := c.trials[asked.Name]; t != nil {
				r.Required[resource] = t.xr
			}
		}
		p, err = planner.Plan(r)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.requires = p.Requires
	return p
}

// due passes, over Experiments first.
func (c *cluster) duePass() bool {
	for _, name := range slices.Sorted(maps.Keys(c.trials)) {
		if c.trials[name].woken {
			c.weigh(name)
			return true
		}
	}
	if c.woken {
		c.pass()
		return true
	}
	return false
}

// wake Crossplane by a change.
func (c *cluster) wake(cause string) {
	c.breaker.take(c.clock)
	c.lookAgain(cause)
}

// lookAgain wakes Crossplane without a change.
func (c *cluster) lookAgain(cause string) {
	if !c.woken {
		c.woken, c.cause = true, cause
	}
}

// run for a time, or until the rollout is in a phase again.
func (c *cluster) run(d time.Duration, until string) {
	c.t.Helper()
	for end := c.clock.Add(d); c.clock.Before(end); {
		for n := 0; c.duePass(); n++ {
			if n > 40 {
				c.t.Fatalf("It wakes itself up for ever, in %v", c.phases)
			}
			c.clock = c.clock.Add(c.takes)
			c.meanwhile()
		}
		if n := len(c.phases); until != "" && n > 1 && c.phases[n-1] == until {
			return
		}
		next := end
		for _, at := range []time.Time{c.again, c.polled} {
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		for _, t := range c.trials {
			if !t.again.IsZero() && t.again.Before(next) {
				next = t.again
			}
		}
		var do func()
		first := -1
		for i, l := range c.due {
			if l.at.Before(next) {
				next, do, first = l.at, l.do, i
			}
		}
		if next.After(c.clock) {
			c.clock = next
		}
		switch {
		case do != nil:
			c.due = append(c.due[:first:first], c.due[first+1:]...)
			do()
		case next.Equal(c.polled):
			c.look()
		case next.Equal(c.again):
			c.lookAgain("time")
		default:
			for _, t := range c.trials {
				t.woken = t.woken || t.again.Equal(next)
			}
		}
	}
}

// meanwhile is what has happened since the last pass began.
func (c *cluster) meanwhile() {
	if c.takes > 0 && !c.polled.IsZero() && !c.polled.After(c.clock) {
		c.look()
	}
	for {
		i := slices.IndexFunc(c.due, func(l later) bool { return !l.at.After(c.clock) })
		if i < 0 {
			return
		}
		do := c.due[i].do
		c.due = slices.Delete(c.due, i, i+1)
		do()
	}
}

// after a moment something happens.
func (c *cluster) after(d time.Duration, do func()) {
	// Nothing happens at the very moment of something else.
	at := c.clock.Add(d + time.Duration(c.random.IntN(1000))*time.Microsecond)
	c.due = append(c.due, later{at, do})
}

// pass of Crossplane: it applies every object of the plan, changed or not, after its references and before the status.
func (c *cluster) pass() {
	c.t.Helper()
	c.woken, c.request.Now = false, c.clock
	p := c.planned()
	before := c.request.Observed
	observed, err := c.server.Compose(before, p)
	if err != nil {
		c.t.Fatal(err)
	}
	c.passes++
	c.causes[c.cause]++
	// The references and the status, both also where they are as before.
	c.writes += 2 + len(p.Objects)
	line := []string{c.clock.Format("15:04:05.000"), "by " + c.cause + ":"}
	refers := false
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if observed[name] == nil {
			c.writes += 2 // its labels go first
			c.wake("its own writes")
			refers, line = true, append(line, "-"+name)
		}
	}
	c.request.Observed = observed
	for _, name := range slices.Sorted(maps.Keys(observed)) {
		if before[name] == nil || !reflect.DeepEqual(before[name].Map(), observed[name].Map()) {
			c.wake("its own writes")
			c.applied(name)
			refers, line = refers || before[name] == nil, append(line, name)
		}
	}
	if refers {
		c.generation++
		c.rewrite(func(composetest.Object) {})
	}
	if phase := compose.Text(asMap(c.t, p.Status), "rollout", "phase"); phase != "" && (len(c.phases) == 0 || c.phases[len(c.phases)-1] != phase) {
		c.phases = append(c.phases, phase)
	}
	changed := c.reports(p, c.request.Composite.Map(), c.generation, c.rewrite)
	c.log = append(c.log, fmt.Sprintf("%s (%.0f tokens left)", strings.Join(append(line, changed...), " "), c.breaker.tokens))
	c.again = c.clock.Add(p.TTL)
}

func asMap(tb testing.TB, v any) map[string]any {
	tb.Helper()
	o, err := composetest.Decode(v)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// reports the status of a plan and its conditions, in two writes as Crossplane does. It returns what changes.
func (c *cluster) reports(p *compose.Plan, xr map[string]any, generation float64, rewrite func(func(composetest.Object))) []string {
	c.t.Helper()
	status := asMap(c.t, p.Status)
	conditions := []any{
		map[string]any{"type": "Synced", "status": "True", "observedGeneration": generation},
		map[string]any{"type": "Ready", "status": map[bool]string{true: "True", false: "False"}[p.Ready], "reason": map[bool]string{true: "Available", false: "Creating"}[p.Ready]},
	}
	for _, k := range p.Conditions {
		conditions = append(conditions, map[string]any{"type": string(k.Type), "status": string(k.Status), "reason": string(k.Reason), "message": k.Message})
	}
	was := map[string]any{}
	maps.Copy(was, compose.Map(xr, "status"))
	reported := was["conditions"]
	delete(was, "conditions")
	var changed []string
	for _, k := range slices.Sorted(maps.Keys(status)) {
		if !reflect.DeepEqual(was[k], status[k]) {
			changed = append(changed, "status."+k)
		}
	}
	if !reflect.DeepEqual(was, status) {
		c.statuses++
		rewrite(func(xr composetest.Object) {
			next := maps.Clone(status)
			next["conditions"] = reported
			xr["status"] = next
		})
	}
	if !reflect.DeepEqual(reported, any(conditions)) {
		c.statuses++
		changed = append(changed, "conditions:")
		for _, k := range conditions {
			if k, _ := k.(map[string]any); !slices.ContainsFunc(compose.List(xr, "status", "conditions"), func(v any) bool { return reflect.DeepEqual(v, any(k)) }) {
				changed = append(changed, fmt.Sprintf("%s=%v/%v", k["type"], k["status"], k["reason"]))
			}
		}
		rewrite(func(xr composetest.Object) {
			status["conditions"] = conditions
			xr["status"] = status
		})
	}
	if len(changed) > 0 {
		c.writes++ // Crossplane compares with what it read before, and so writes once more.
	}
	return changed
}

// change a composed object as its controller does, which wakes Crossplane.
func (c *cluster) change(name string, modify func(composetest.Object)) {
	o := c.request.Observed[name]
	if o == nil {
		return
	}
	is, err := composetest.Decode(o.Map())
	if err != nil {
		c.t.Fatal(err)
	}
	modify(is)
	if reflect.DeepEqual(map[string]any(is), o.Map()) {
		return
	}
	observed := map[string]compose.Object{}
	maps.Copy(observed, c.request.Observed)
	observed[name] = is
	c.request.Observed = observed
	c.wake(name)
}

// applied object, and what its controller makes of it.
func (c *cluster) applied(name string) {
	switch {
	case strings.HasPrefix(name, "deployment-"):
		c.after(50*time.Millisecond, func() { c.starts(name) })
	case name == names.Route:
		c.after(200*time.Millisecond, func() {
			c.change(name, func(o composetest.Object) {
				seen := func(t string) any {
					return map[string]any{"type": t, "status": "True", "observedGeneration": compose.Map(o, "metadata")["generation"]}
				}
				o["status"] = map[string]any{"parents": []any{map[string]any{"conditions": []any{seen("Accepted"), seen("ResolvedRefs")}}}}
			})
		})
	case name == names.Analysis:
		c.asked()
	case name == names.ComposedAutoscaler("a"), name == names.ComposedAutoscaler("b"):
		c.after(15*time.Second, func() { c.scales(name) })
	case (name == names.Autoscaler("a") || name == names.Autoscaler("b")) && !c.loaded[name]:
		c.loaded[name] = true
		c.after(15*time.Second, func() { c.needs(name) })
	}
}

// starts pods, which become ready one after the other.
func (c *cluster) starts(name string) {
	c.change(name, func(o composetest.Object) {
		n, status := compose.Number(o, 1, "spec", "replicas"), compose.Map(o, "status")
		serve := min(n, compose.Number(status, 0, "availableReplicas"))
		o["status"] = deploymentStatus(o, n, serve)
		if c.missing != "" && strings.Contains(fmt.Sprint(o["spec"]), c.missing) {
			return
		}
		for i := serve; i < n; i++ {
			c.after(time.Duration(5+2*(i-serve))*time.Second, func() { c.serves(name) })
		}
	})
}

func (c *cluster) serves(name string) { c.available(name, 1) }

// available replicas of a Deployment, more or fewer by some.
func (c *cluster) available(name string, more int64) {
	c.change(name, func(o composetest.Object) {
		n := compose.Number(o, 1, "spec", "replicas")
		o["status"] = deploymentStatus(o, n, max(0, min(n, compose.Number(o, 0, "status", "availableReplicas")+more)))
	})
	// The budget of a slot counts them.
	c.after(20*time.Millisecond, func() {
		for _, slot := range names.Slots {
			c.change(names.Budget(slot), func(o composetest.Object) {
				if d := c.request.Observed[names.Deployment(slot)]; d != nil {
					o["status"] = map[string]any{"currentHealthy": float64(compose.Number(d.Map(), 0, "status", "availableReplicas"))}
				}
			})
		}
	})
}

func deploymentStatus(o composetest.Object, n, serve int64) map[string]any {
	return map[string]any{
		"observedGeneration": float64(compose.Number(o, 0, "metadata", "generation")),
		"replicas":           float64(n), "updatedReplicas": float64(n), "readyReplicas": float64(serve), "availableReplicas": float64(serve),
	}
}

// scales is an autoscaler that reports other numbers every quarter of a minute.
func (c *cluster) scales(name string) {
	c.change(name, func(o composetest.Object) {
		c.autoscaled++
		o["status"] = map[string]any{
			"conditions":      []any{map[string]any{"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}},
			"desiredReplicas": float64(c.random.IntN(1 << 30)),
		}
	})
	c.after(15*time.Second, func() { c.scales(name) })
}

// needs is a load that swings by a tenth, every quarter of a minute, which an Autoscaler reports where it is asked for.
func (c *cluster) needs(name string) {
	c.change(name, func(o composetest.Object) {
		now, _ := compose.Map(o, "status", "atProvider")["needs"].(float64)
		n := 1.4 + 0.1*float64(c.random.IntN(3))
		if compose.Map(o, "spec", "forProvider")["reportNeeds"] != true {
			delete(o, "status")
			return
		}
		if c.autoscaled++; n > now {
			o["status"] = map[string]any{"atProvider": map[string]any{"needs": n}}
			c.writes++
		}
	})
	c.after(15*time.Second, func() { c.needs(name) })
}

// asked is the Analysis as it is composed now.
func (c *cluster) asked() {
	c.t.Helper()
	raw, err := yaml.Marshal(c.request.Observed[names.Analysis].Map()["spec"])
	if err != nil {
		c.t.Fatal(err)
	}
	a := c.get()
	was := a.DeepCopy()
	a.Spec.ForProvider = v1alpha1.AnalysisParameters{}
	if err := yaml.Unmarshal(raw, &a.Spec); err != nil {
		c.t.Fatal(err)
	}
	if reflect.DeepEqual(was.Spec, a.Spec) {
		return
	}
	a.Generation++
	if err := c.kube.Update(c.t.Context(), a); err != nil {
		c.t.Fatal(err)
	}
	c.polled = c.clock.Add(time.Millisecond)
}

// look of the provider at Prometheus, whose numbers are never twice the same.
func (c *cluster) look() {
	c.t.Helper()
	for s, n := range map[string]float64{"a": 12000, "b": 3000} {
		x := algorithm(n+float64(c.random.IntN(200)), 0, 2)
		x.failures = float64(c.random.IntN(3))
		c.prom.slots[s] = x
	}
	before := c.get()
	c.stand.writes = 0
	res := c.reconcile()
	if m := c.obs.memory.of("watch", c.clock); m.lookedAt.Equal(c.clock) {
		select {
		case <-c.stand.woken:
			res = c.reconcile()
		case <-time.After(time.Minute):
			c.t.Fatal("The look at Prometheus does not end")
		}
	}
	c.writes += c.stand.writes
	c.polled = c.clock.Add(res.RequeueAfter)
	after := c.get()
	if reflect.DeepEqual(before.Status, after.Status) {
		return
	}
	status, err := composetest.Decode(after.Status)
	if err != nil {
		c.t.Fatal(err)
	}
	c.change(names.Analysis, func(o composetest.Object) { o["status"] = map[string]any(status) })
}

// every optional kind that the provider brings.
var provided = []schema.GroupVersionKind{v1alpha1.AutoscalerGroupVersionKind}

// routedTo a Gateway.
const routedTo = "route: {gateway: {name: shared, namespace: gateway}}"

// TestRolloutCost counts what a good revision costs with the defaults of a rollout: a step, half an hour of baking, a look every
// half a minute.
func TestRolloutCost(t *testing.T) {
	cases := map[string]struct {
		reason, spec string
		takes        time.Duration
		// most writes, the most of them that change the status, and the least tokens that Crossplane's circuit breaker has left.
		most, statuses int
		tokens         float64
	}{
		"Fixed": {"Only what may change a decision reaches anybody.", "{image: %s, replicas: 3, " + routedTo + ", lifecycle: {}}", 0, 456, 12, 57},
		"Measured": {
			"As on a cluster, where a pass takes a while, and what happens meanwhile is one more.",
			"{image: %s, replicas: 2, " + routedTo + ", lifecycle: {}}", 200 * time.Millisecond, 251, 11, 57,
		},
		"Scaled": {"So it is with the load of both revisions.", "{image: %s, scaling: {minReplicas: 3, maxReplicas: 9, signal: CPU}, " + routedTo + ", lifecycle: {}}", 0, 590, 13, 51},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, fmt.Sprintf(tc.spec, "registry.example.org/x:1"), provided...)
			c.takes = tc.takes
			began := c.clock
			c.edit(fmt.Sprintf(tc.spec, "registry.example.org/x:2"))
			c.run(2*time.Hour, "Stable")
			t.Logf("%d writes in %d passes for %d objects, %d of them of the status, at least %.0f tokens left, within %s, with %d reports of an autoscaler: %v, %v\n%s",
				c.writes, c.passes, len(c.request.Observed), c.statuses, c.breaker.least, c.clock.Sub(began).Round(time.Second), c.autoscaled, c.phases, c.causes,
				strings.Join(c.log, "\n"))
			// The status comes with the edit, so the first one is Preparing.
			want := "Preparing Stepping Promoting Baking Draining Stable"
			if got := strings.Join(c.phases, " "); got != want {
				t.Fatalf("The rollout should be %s, got %s", want, got)
			}
			if took := c.clock.Sub(began); took < 32*time.Minute || took > 40*time.Minute {
				t.Errorf("It should take its step and its bake, got %s", took)
			}
			if c.writes > tc.most {
				t.Errorf("\n%s\nwant at most %d writes, got %d", tc.reason, tc.most, c.writes)
			}
			if c.statuses > tc.statuses || c.breaker.least < tc.tokens {
				t.Errorf("\n%s\nwant at most %d changes of the status and at least %.0f tokens left, got %d and %.0f",
					tc.reason, tc.statuses, tc.tokens, c.statuses, c.breaker.least)
			}
			if scaled := name == "Scaled"; scaled != (c.autoscaled > 0) {
				t.Errorf("\n%s\ngot %d reports of an autoscaler", tc.reason, c.autoscaled)
			}
		})
	}
}

// crashes of all replicas of a slot at the same time, which become ready again later.
func (c *cluster) crashes(slot string, again time.Duration) {
	c.t.Helper()
	name, n := names.Deployment(slot), int64(0)
	if d := c.request.Observed[name]; d != nil {
		n = compose.Number(d.Map(), 0, "status", "availableReplicas")
	}
	for i := range n {
		c.after(time.Duration(100*i)*time.Millisecond, func() { c.available(name, -1) })
		c.after(again+time.Duration(300*i)*time.Millisecond, func() { c.available(name, 1) })
	}
}

// TestBreakerStaysClosed crashes the candidate of a rollout twice, as close together as the kubelet starts containers again: Crossplane
// listens all the time.
func TestBreakerStaysClosed(t *testing.T) {
	const spec = "{image: %s, replicas: %d, " + routedTo + ", lifecycle: {canaryWeight: 50}}"
	for name, tc := range map[string]struct {
		reason   string
		replicas int
		slot     string
		phase    string
	}{
		"Two":   {"two replicas", 2, "b", "Stepping"},
		"Three": {"three replicas", 3, "b", "Stepping"},
		"Four":  {"four replicas", 4, "b", "Stepping"},
		"Live":  {"the live revision", 3, "a", "Stepping"},
		"Bake":  {"a revision that bakes", 3, "b", "Baking"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, fmt.Sprintf(spec, "registry.example.org/x:1", tc.replicas), provided...)
			c.takes = 200 * time.Millisecond
			c.edit(fmt.Sprintf(spec, "registry.example.org/x:2", tc.replicas))
			c.run(10*time.Minute, tc.phase)
			c.run(10*time.Second, "")
			// A container that ends for the first time starts at once, for the second time after ten seconds.
			c.crashes(tc.slot, 6*time.Second)
			c.run(10*time.Second, "")
			c.crashes(tc.slot, 16*time.Second)
			c.run(time.Minute, "")
			t.Logf("%d passes, at least %.0f tokens left: %v\n%s", c.passes, c.breaker.least, c.phases, strings.Join(c.log, "\n"))
			if c.breaker.least < 0 {
				t.Errorf("%s: Crossplane's breaker opens", tc.reason)
			}
		})
	}
}

// TestManyReplicas become ready two seconds apart, and Crossplane listens all the time.
func TestManyReplicas(t *testing.T) {
	const spec = "{image: %s, replicas: 24, " + routedTo + ", lifecycle: {}}"
	c := newCluster(t, fmt.Sprintf(spec, "registry.example.org/x:1"), provided...)
	c.takes = 200 * time.Millisecond
	c.edit(fmt.Sprintf(spec, "registry.example.org/x:2"))
	c.run(2*time.Hour, "Stable")
	t.Logf("%d writes in %d passes, at least %.0f tokens left", c.writes, c.passes, c.breaker.least)
	if c.breaker.least < 0 {
		t.Error("Crossplane's breaker opens")
	}
}

// TestExperimentCost has a person write an Experiment in three tries, and counts what that costs. Both kinds look at each other, and
// each change of one takes tokens of the other's breaker.
func TestExperimentCost(t *testing.T) {
	const (
		algorithm = "{image: %q, replicas: 1, " + routedTo + ", lifecycle: {canaryWeight: 50}, availability: {drainSeconds: 5}, experiment: %s}"
		tried     = "{algorithm: reco, armB: {%s}, assignment: {percent: 50}, metric: {kind: Latency, withinMs: 100}, " +
			"guardrails: {successThreshold: 0.95}, stop: {duration: 1h, minSamples: 10000000}}"
		mostPasses, mostReads, mostWrites = 39, 31, 624
		// Below zero the breaker opens. This is not met yet, so that it is a bound for what gets worse.
		leastTokens = -4
	)
	c := newCluster(t, fmt.Sprintf(algorithm, "registry.example.org/x:1", "tried"), provided...)
	c.missing = "nowhere"
	c.experiment("tried", fmt.Sprintf(tried, "modelVersion: '7'"))
	c.run(3*time.Second, "")
	c.experiment("tried", fmt.Sprintf(tried, "image: 'registry.example.org/nowhere:1'"))
	c.run(3*time.Second, "")
	c.experiment("tried", fmt.Sprintf(tried, "env: [{name: VERSION, value: b}]"))
	c.run(time.Second, "")
	c.experiment("tuned", fmt.Sprintf(tried, "env: [{name: VERSION, value: b}]"))
	c.edit(fmt.Sprintf(algorithm, "registry.example.org/x:1", "tuned"))
	c.run(2*time.Minute, "")
	c.experiment("tuned", strings.Replace(fmt.Sprintf(tried, "env: [{name: VERSION, value: b}]"), "100", "50", 1))
	c.run(30*time.Second, "")
	c.edit(strings.Replace(fmt.Sprintf(algorithm, "registry.example.org/x:1", ""), ", experiment: ", "", 1))
	c.run(5*time.Second, "")

	reads, least := 0, burst*1.0
	for name, e := range c.trials {
		reads, least = reads+e.passes, min(least, e.breaker.least)
		if got := compose.Text(e.xr, "status", "reason"); got != "ExperimentEdited" {
			t.Errorf("Experiment %s should have ended by its edit, got %s", name, got)
		}
	}
	t.Logf("%d writes, %d of them of the status, in %d passes over the Algorithm and %d over the Experiments; tokens left: %.0f and %.0f; %v\n%s",
		c.writes, c.statuses, c.passes, reads, c.breaker.least, least, c.phases, strings.Join(c.log, "\n"))
	if c.passes > mostPasses || reads > mostReads || c.writes > mostWrites || min(c.breaker.least, least) < leastTokens {
		t.Errorf("want at most %d passes, %d over the Experiments, %d writes, and at least %d tokens, got %d, %d, %d, %.0f and %.0f",
			mostPasses, mostReads, mostWrites, leastTokens, c.passes, reads, c.writes, c.breaker.least, least)
	}
}

// TestBusyHourCost counts what an hour costs whose load is never twice the same.
func TestBusyHourCost(t *testing.T) {
	const spec = "{image: x, scaling: {minReplicas: 3, maxReplicas: 9, signal: CPU}, route: {gateway: {name: shared, namespace: gateway}}, " +
		"metrics: {successRatio: 0.99}, lifecycle: {}}"
	cases := map[string]struct {
		reason string
		kinds  []schema.GroupVersionKind
		during time.Duration
		most   int
		least  int
	}{
		"Quiet": {reason: "What an autoscaler reports reaches nobody.", kinds: provided, during: time.Hour, most: 600},
		"Noisy": {reason: "Without the provider it is composed, and each report has Crossplane apply every object.", during: 5 * time.Minute, most: 10000, least: 2000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, spec, tc.kinds...)
			c.run(tc.during, "")
			hour := c.writes * int(time.Hour/tc.during)
			t.Logf("%d writes an hour: %d in %d passes for %d objects within %s, with %d reports of an autoscaler: %v",
				hour, c.writes, c.passes, len(c.request.Observed), tc.during, c.autoscaled, c.causes)
			if hour > tc.most || hour < tc.least {
				t.Errorf("\n%s\nwant from %d to %d writes an hour, got %d", tc.reason, tc.least, tc.most, hour)
			}
			if noisy := tc.least > 0; noisy != (c.autoscaled > 0) {
				t.Errorf("\n%s\ngot %d reports of an autoscaler", tc.reason, c.autoscaled)
			}
		})
	}
}
