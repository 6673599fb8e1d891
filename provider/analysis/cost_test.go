// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
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
	// again is when Crossplane looks by itself, and polled when the provider does.
	again, polled time.Time
	woken         bool
	generation    float64
	// passes of Crossplane, and writes of Crossplane and the provider.
	passes, writes int
	phases         []string
	// causes of passes.
	causes map[string]int
	cause  string
	// autoscaled is how often an autoscaler has reported its numbers.
	autoscaled int
	// loaded are the Autoscalers that requests reach.
	loaded map[string]bool
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
		causes: map[string]int{}, loaded: map[string]bool{},
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
	c.passes, c.writes, c.phases, c.autoscaled, c.causes = 0, 0, nil, 0, map[string]int{}
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
}

// wake Crossplane.
func (c *cluster) wake(cause string) {
	if !c.woken {
		c.woken, c.cause = true, cause
	}
}

// run for a time, or until the rollout is in a phase again.
func (c *cluster) run(d time.Duration, until string) {
	c.t.Helper()
	for end := c.clock.Add(d); c.clock.Before(end); {
		for n := 0; c.woken; n++ {
			if n > 20 {
				c.t.Fatalf("It wakes itself up for ever, in %v", c.phases)
			}
			c.pass()
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
		var do func()
		first := -1
		for i, l := range c.due {
			if l.at.Before(next) {
				next, do, first = l.at, l.do, i
			}
		}
		c.clock = next
		switch {
		case do != nil:
			c.due = append(c.due[:first:first], c.due[first+1:]...)
			do()
		case next.Equal(c.polled):
			c.look()
		default:
			c.wake("time")
		}
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
	p, err := planner.Plan(c.request)
	if err != nil {
		c.t.Fatal(err)
	}
	before := c.request.Observed
	observed, err := c.server.Compose(before, p)
	if err != nil {
		c.t.Fatal(err)
	}
	c.passes++
	c.causes[c.cause]++
	c.writes += 1 + len(p.Objects)
	for name := range before {
		if observed[name] == nil {
			c.writes++
			c.wake("its own writes")
		}
	}
	c.request.Observed = observed
	for name := range observed {
		if before[name] == nil || !reflect.DeepEqual(before[name].Map(), observed[name].Map()) {
			c.wake("its own writes")
			c.applied(name)
		}
	}
	c.report(p)
	c.again = c.clock.Add(p.TTL)
}

// report the status of a plan and its conditions, in two writes as Crossplane does.
func (c *cluster) report(p *compose.Plan) {
	status, err := composetest.Decode(p.Status)
	if err != nil {
		c.t.Fatal(err)
	}
	conditions := []any{map[string]any{"type": "Ready", "status": map[bool]string{true: "True", false: "False"}[p.Ready], "reason": map[bool]string{true: "Available", false: "Creating"}[p.Ready]}}
	for _, k := range p.Conditions {
		conditions = append(conditions, map[string]any{"type": string(k.Type), "status": string(k.Status), "reason": string(k.Reason), "message": k.Message})
	}
	was := composetest.Object{}
	maps.Copy(was, compose.Map(c.request.Composite.Map(), "status"))
	reported := was["conditions"]
	delete(was, "conditions")
	changed := !reflect.DeepEqual(map[string]any(was), map[string]any(status))
	if changed {
		c.writes++
	}
	if !reflect.DeepEqual(reported, any(conditions)) {
		c.writes++
		changed = true
	}
	if phase := compose.Text(status, "rollout", "phase"); phase != "" && (len(c.phases) == 0 || c.phases[len(c.phases)-1] != phase) {
		c.phases = append(c.phases, phase)
	}
	if changed {
		status["conditions"] = conditions
		c.rewrite(func(xr composetest.Object) { xr["status"] = map[string]any(status) })
	}
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
		for i := serve; i < n; i++ {
			c.after(time.Duration(5+2*(i-serve))*time.Second, func() { c.serves(name) })
		}
	})
}

func (c *cluster) serves(name string) {
	c.change(name, func(o composetest.Object) {
		n := compose.Number(o, 1, "spec", "replicas")
		o["status"] = deploymentStatus(o, n, min(n, compose.Number(o, 0, "status", "availableReplicas")+1))
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
		most         int
	}{
		"Fixed":  {"Only what may change a decision reaches anybody.", "{image: %s, replicas: 3, " + routedTo + ", lifecycle: {}}", 570},
		"Scaled": {"So it is with the load of both revisions.", "{image: %s, scaling: {minReplicas: 3, maxReplicas: 9, signal: CPU}, " + routedTo + ", lifecycle: {}}", 700},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, fmt.Sprintf(tc.spec, "registry.example.org/x:1"), provided...)
			began := c.clock
			c.edit(fmt.Sprintf(tc.spec, "registry.example.org/x:2"))
			c.run(2*time.Hour, "Stable")
			t.Logf("%d writes in %d passes for %d objects, within %s, with %d reports of an autoscaler: %v, %v",
				c.writes, c.passes, len(c.request.Observed), c.clock.Sub(began).Round(time.Second), c.autoscaled, c.phases, c.causes)
			want := "Stable Preparing Stepping Promoting Baking Draining Stable"
			if got := strings.Join(c.phases, " "); got != want {
				t.Fatalf("The rollout should be %s, got %s", want, got)
			}
			if took := c.clock.Sub(began); took < 32*time.Minute || took > 40*time.Minute {
				t.Errorf("It should take its step and its bake, got %s", took)
			}
			if c.writes > tc.most {
				t.Errorf("\n%s\nwant at most %d writes, got %d", tc.reason, tc.most, c.writes)
			}
			if scaled := name == "Scaled"; scaled != (c.autoscaled > 0) {
				t.Errorf("\n%s\ngot %d reports of an autoscaler", tc.reason, c.autoscaled)
			}
		})
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
