package algorithm

import (
	"fmt"
	"maps"
	"regexp"
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

func (w *world) status(modify func(map[string]any)) {
	xr, err := composetest.Decode(w.request.Composite.Map())
	if err != nil {
		w.t.Fatal(err)
	}
	if xr["status"] == nil {
		xr["status"] = map[string]any{}
	}
	modify(xr["status"].(map[string]any))
	w.request.Composite = xr
}

func (w *world) analysis(atProvider map[string]any) {
	w.change(names.Analysis, func(o composetest.Object) { o["status"] = map[string]any{"atProvider": atProvider} })
}

func TestNeverServedPinned(t *testing.T) {
	w := newWorld(t, "{image: x, model: {uri: s3://bbb/c}}")
	w.request.Settings.Algorithm.CompanionImage = "registry.example.org/typo/companion:1"
	for range 3 {
		w.compose(w.plan())
	}
	w.request.Settings.Algorithm.CompanionImage = "registry.example.org/capstan/companion:1"
	for range 3 {
		w.later(time.Hour)
		w.compose(w.plan())
	}
	d := object(t, w.plan(), names.Deployment(names.SlotA))
	c := compose.List(d, "spec", "template", "spec", "initContainers")[0].(map[string]any)
	if c["image"] != "registry.example.org/capstan/companion:1" {
		t.Errorf("image stays %v", c["image"])
	}
}

func TestHistoryAfterGoingBack(t *testing.T) {
	spec := func(i string) string { return "{image: " + i + ", revisionHistoryLimit: 2}" }
	w := serving(t, spec("y1"))
	for _, image := range []string{"y2", "y3", "y1", "y4"} {
		w.edit(spec(image))
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
			images = append(images, fmt.Sprint(c["image"]))
		}
	}
	slices.Sort(images)
	if diff := cmp.Diff([]string{"y1", "y3", "y4"}, images); diff != "" {
		t.Error(diff)
	}
}

func TestAwaitingKillsCandidate(t *testing.T) {
	const spec = "{image: %s, replicas: 3, secrets: [{name: s, rotate: Rolling}]}"
	w := newWorld(t, fmt.Sprintf(spec, "x"))
	w.compose(w.plan())
	w.analysis(map[string]any{"secrets": []any{map[string]any{"name": "s", "fingerprint": "1"}}})
	w.compose(w.plan())
	w.compose(w.plan())
	w.run(nil)
	w.compose(w.plan())
	w.edit(fmt.Sprintf(spec, "z"))
	w.compose(w.plan())
	w.runIn(names.SlotB, func(s map[string]any) { s["availableReplicas"], s["readyReplicas"] = 2.0, 2.0 })
	delete(w.request.Observed, names.Analysis)
	if got, want := scene(t, w.plan()), "a=x*3 b=z*3 callers=a"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

func TestUnknownField(t *testing.T) {
	w := serving(t, "{image: x}")
	w.edit("{image: x, somethingNew: Usual}")
	if got, want := scene(t, w.plan()), "a=x*1 callers=a"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

func TestSecretOrder(t *testing.T) {
	w := serving(t, "{image: x, secrets: [{name: a}, {name: b}]}")
	w.edit("{image: x, secrets: [{name: b}, {name: a}]}")
	if got, want := scene(t, w.plan()), "a=x*1 callers=a"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

// TestQuantityForms: b.
func TestQuantityForms(t *testing.T) {
	for _, p := range [][2]string{
		{"{image: x, resources: {cpu: 1}}", "{image: x, resources: {cpu: '1'}}"},
		{"{image: x, resources: {cpu: 500m}}", "{image: x, resources: {cpu: '0.5'}}"},
		{"{image: x, env: [{name: A}]}", "{image: x, env: [{name: A, value: ''}]}"},
	} {
		w := serving(t, p[0])
		w.edit(p[1])
		if got, want := scene(t, w.plan()), "a=x*1 callers=a"; got != want {
			t.Errorf("%v got %s want %s", p, got, want)
		}
	}
}

const registered = "{image: %s, model: {uri: models:/m@champion, liveAlias: live%s}}"

func modelled(t *testing.T, w *world, version string) {
	t.Helper()
	w.status(func(s map[string]any) {
		s["model"] = map[string]any{"name": "m", "alias": "champion", "version": version, "source": "s3://models/" + version}
	})
}

func TestModelOfLostRecord(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(registered, "x", ""))
	modelled(t, w, "3")
	w.compose(w.plan())
	w.compose(w.plan())
	w.run(nil)
	w.compose(w.plan())
	w.compose(w.plan())
	live := w.request.Observed[names.Deployment(names.SlotA)].Map()["metadata"].(map[string]any)["annotations"].(map[string]any)[names.AnnotationRevision].(string)
	alias := func() string { return aliasOf(t, w) }
	w.status(func(s map[string]any) { s["revision"] = map[string]any{"live": live, "slot": "a"} })
	modelled(t, w, "4")
	w.compose(w.plan())
	delete(w.request.Observed, names.RevisionPrefix+live)
	if got := alias(); got != "3" {
		t.Errorf("callers reach version 3, and the alias goes to %s", got)
	}
}

func TestObservedRefused(t *testing.T) {
	const spec = "{image: x, model: {uri: s3://bbb/c, cache: {resources: {requests: {storage: %s}}}}}"
	w := serving(t, fmt.Sprintf(spec, "1Gi"))
	w.told(w.plan())
	w.edit(fmt.Sprintf(spec, "2Gi"))
	for range 5 {
		w.synced(`cannot compose resources: cannot apply composed resource "models": persistentvolumeclaims "reco-models" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`, nil)
		p := w.plan()
		size := compose.Text(object(t, p, names.ModelCache), "spec", "resources", "requests", "storage")
		if size == "1Gi" {
			return
		}
		w.later(10 * time.Minute)
	}
	t.Error("asks for ever for what is refused, which ends each pass of Crossplane")
}

func TestScalerText(t *testing.T) {
	w := serving(t, "{image: x, scaling: {maxReplicas: 4}}")
	say := func(pod string) string {
		w.change(names.ComposedAutoscaler(names.SlotA), func(o composetest.Object) {
			o["status"] = map[string]any{"conditions": []any{map[string]any{
				"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric", "lastTransitionTime": "2026-11-20T10:00:00Z",
				"message": "the HPA was unable to compute the replica count: failed to get cpu utilization: missing request for cpu in container linkerd-proxy of Pod " + pod,
			}}}
		})
		return condition(w.plan(), v1alpha1.TypeMetricsAvailable).Message
	}
	if a, b := say("reco-a-7d9f8-x2b4c"), say("reco-a-7d9f8-aaaaa"); a != b {
		t.Errorf("flaps:\n%s\n%s", a, b)
	}
}

func TestQuotaText(t *testing.T) {
	w := serving(t, "{image: x}")
	say := func(used string) string {
		w.run(func(s map[string]any) {
			s["availableReplicas"] = 0.0
			s["conditions"] = []any{map[string]any{
				"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
				"message": `pods "reco-a-7d9f8-x2b4c" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=` + used + `, limited: cpu=10`,
			}}
		})
		return condition(w.plan(), v1alpha1.TypePodsHealthy).Message
	}
	if a, b := say("9"), say("9500m"); a != b {
		t.Errorf("flaps:\n%s\n%s", a, b)
	}
}

func TestRulesLost(t *testing.T) {
	w := serving(t, "{image: x, scaling: {maxReplicas: 4, signal: Query, perReplica: 3}, metrics: {queries: [{name: load, query: 'sum(q)'}]}}")
	w.analysis(map[string]any{"scaling": map[string]any{"signal": "Query", "expressions": []any{map[string]any{"slot": "a", "expression": "sum(q)"}}}})
	w.compose(w.plan())
	if w.request.Observed[names.Rules] == nil {
		t.Fatal("no rules")
	}
	delete(w.request.Observed, names.Analysis)
	if w.plan().Objects[names.Rules].Object == nil {
		t.Error("the rule that the autoscaler follows is deleted with the Analysis")
	}
}

func TestMinimumInOutage(t *testing.T) {
	const spec = "{image: x, scaling: {minReplicas: %d, maxReplicas: 9, targetLatencyMs: 50}}"
	w := serving(t, fmt.Sprintf(spec, 1))
	w.analysis(map[string]any{"scaling": map[string]any{"signal": "InFlight", "perReplica": 2.0}})
	w.compose(w.plan())
	w.scale(3)
	w.analysis(map[string]any{})
	w.edit(fmt.Sprintf(spec, 6))
	if n := compose.Number(object(t, w.plan(), names.ComposedAutoscaler(names.SlotA)), -1, "spec", "minReplicas"); n != 6 {
		t.Errorf("minReplicas stays %d", n)
	}
}

func TestTimeout(t *testing.T) {
	re := regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)
	for _, d := range []string{"1.5s", "2500ms", "1h", "90s", "0.5m", "100ms", "1s500ms", "61001ms"} {
		w := newWorld(t, "{image: x, route: {timeout: "+d+", gateway: {name: g}}}")
		r := object(t, w.plan(), names.Route)
		if r == nil {
			continue
		}
		got := compose.Text(compose.List(r, "spec", "rules")[0].(map[string]any), "timeouts", "request")
		if !re.MatchString(got) {
			t.Errorf("%s becomes %q, which HTTPRoute refuses", d, got)
		}
	}
	for _, path := range []string{"/a/../b", "/%", "/a/.", "/a%2fb"} {
		w := newWorld(t, "{image: x, route: {path: '"+path+"', gateway: {name: g}}}")
		if c := condition(w.plan(), v1alpha1.TypeAccepted); c.Status != "False" || !strings.Contains(c.Message, "spec.route.path") {
			t.Errorf("path %s is accepted, and HTTPRoute refuses it", path)
		}
	}
}

func TestNamesGetAlong(t *testing.T) {
	a := serving(t, "{image: x, metrics: {}}")
	b := newWorld(t, "{image: x}").named("reco-slot-a")
	n := compose.Text(object(t, b.plan(), names.Service), "metadata", "name")
	if m := compose.Text(object(t, a.plan(), names.SlotService(names.SlotA)), "metadata", "name"); m == n {
		t.Errorf("both are %s", n)
	}
}

// 18: after the switch, HPA of the new slot; slots reused while fields of scale remain. 19: the live Deployment disappears while
// scaled 20: both Deployments and the records gone while the spec asks for another 21: stale service after a revert
// TestSlotServiceRefused: slot Service refused with metrics only.
func TestSlotServiceRefused(t *testing.T) {
	w := serving(t, "{image: x}")
	w.told(w.plan())
	w.edit("{image: z, metrics: {}}")
	for range 6 {
		w.status(func(s map[string]any) {
			var l []any
			for _, sl := range []string{"a", "b"} {
				l = append(l, map[string]any{"resource": "service-" + sl, "message": "exceeded quota", "until": w.request.Now.Add(50 * time.Second).Format(time.RFC3339)})
			}
			s["withheld"] = l
		})
		w.compose(w.plan())
		if w.occupied(names.SlotB) {
			w.runIn(names.SlotB, nil)
		}
		w.later(10 * time.Minute)
	}
	p := w.plan()
	if !strings.Contains(scene(t, p), "callers=b") {
		t.Error("an update waits for ever for a Service that only Prometheus needs")
	}
}

// TestSettles: status settles.
func TestSettles(t *testing.T) {
	for _, spec := range []string{"{image: x}", "{image: x, metrics: {}, route: {gateway: {name: g}}, scaling: {maxReplicas: 3, targetLatencyMs: 5}}", fmt.Sprintf(registered, "x", ""), "{image: x, secrets: [{name: s, rotate: Rolling}]}"} {
		w := newWorld(t, spec)
		last := ""
		for n := range 12 {
			p := w.plan()
			w.compose(p)
			w.told(p)
			if w.occupied(names.SlotA) {
				w.run(nil)
			}
			now := fmt.Sprint(w.request.Composite.Map()["status"])
			if n == 11 && now != last {
				t.Errorf("%s: not settled: %s\n%s", spec, last, now)
			}
			last = now
		}
	}
}

// 24: PDB at the switch

// 25: replicas 0 then up 26: scaling with an external image; latency alert TestBadEditsAndHistory: never-served revisions push
// those that served out of the history.
func TestBadEditsAndHistory(t *testing.T) {
	spec := func(i string) string { return "{image: " + i + ", revisionHistoryLimit: 2}" }
	w := serving(t, spec("x"))
	w.edit(spec("z"))
	w.update()
	w.later(time.Minute)
	w.update()
	for _, bad := range []string{"bad1", "bad2", "bad3"} {
		w.edit(spec(bad))
		w.compose(w.plan())
		w.compose(w.plan())
	}
	p := w.plan()
	found := false
	for resource := range p.Objects {
		if strings.HasPrefix(resource, names.RevisionPrefix) {
			o := object(t, p, resource)
			c := compose.List(o, "data", "template", "spec", "containers")[0].(map[string]any)
			found = found || c["image"] == "x"
		}
	}
	if !found {
		t.Error("x, which served before z, is forgotten")
	}
}

// TestClock: clock.
func TestClock(t *testing.T) {
	w := serving(t, "{image: x}")
	w.edit("{image: v}")
	w.compose(w.plan())
	w.runIn("b", nil)
	w.later(24 * time.Hour) // one replica of the function has a wrong clock
	w.compose(w.plan())
	w.later(-24 * time.Hour)
	w.edit("{image: z}")
	w.compose(w.plan()) // and the others write what they can know
	w.later(time.Hour)
	p := w.plan()
	if c := condition(p, v1alpha1.TypeUpdated); c.Reason == v1alpha1.ReasonAwaitingDrain {
		t.Errorf("an hour later: %s, TTL %s", c.Message, p.TTL)
	}
}

// TestCandidateModelLost: a candidate whose record is lost.
func TestCandidateModelLost(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(registered, "x", ""))
	modelled(t, w, "3")
	w.compose(w.plan())
	w.compose(w.plan())
	w.run(nil)
	w.compose(w.plan())
	w.compose(w.plan())
	live := compose.Text(w.request.Observed[names.Deployment(names.SlotA)].Map(), "metadata", "annotations", names.AnnotationRevision)
	w.status(func(s map[string]any) { s["revision"] = map[string]any{"live": live, "slot": "a"} })
	modelled(t, w, "4")
	w.compose(w.plan())
	for n := range w.request.Observed {
		if strings.HasPrefix(n, names.RevisionPrefix) && n != names.RevisionPrefix+live {
			delete(w.request.Observed, n)
		}
	}
	w.compose(w.plan())
	w.runIn(names.SlotB, nil)
	for range 3 {
		w.compose(w.plan())
	}
	if got := aliasOf(t, w); got != "4" {
		t.Errorf("%s: alias stays at %s", scene(t, w.plan()), got)
	}
}

// TestOwnQueries: queries of one's own.
func TestOwnQueries(t *testing.T) {
	w := serving(t, `{image: x, metrics: {queries: [{name: requests, query: 'increase(p_total[$window])'}, {name: latency, query: 'increase(p_seconds_bucket[$window])'}, {name: in-flight, query: 'p_busy'}]}, scaling: {maxReplicas: 4, targetLatencyMs: 50}}`)
	w.analysis(map[string]any{"scaling": map[string]any{"signal": "InFlight", "perReplica": 2.0}})
	p := w.plan()
	hpa := fmt.Sprint(object(t, p, names.ComposedAutoscaler(names.SlotA))["spec"])
	rules := fmt.Sprint(object(t, p, names.Rules)["spec"])
	for _, series := range []string{"inflight", "latency_p95_ms"} {
		if strings.Contains(hpa, "capstan_"+series) && !strings.Contains(rules, "record:capstan:"+series) {
			t.Errorf("the autoscaler follows capstan_%s, which nothing records for queries of one's own", series)
		}
	}
	w.request.Kinds[PrometheusRuleGVK] = compose.Unavailable
	delete(w.request.Observed, names.Rules)
}

// TestOwnLatencyAlert: the objective of the latency has its alert also where the spec has a query of its own, whether or not
// replicas are scaled by it.
func TestOwnLatencyAlert(t *testing.T) {
	const own = "metrics: {queries: [{name: latency, query: 'increase(p_seconds_bucket[$window])'}]}"
	recorded := []any{map[string]any{"slot": "a", "series": "capstan:own_latency_ms", "expression": "narrowed"}}
	for name, tc := range map[string]struct {
		reason, spec string
		reported     map[string]any
		asks         any
		records      bool
		alert        bool
	}{
		"Recorded":  {"The provider has narrowed the query.", "objectives: {latencyMs: 50, latencyPercentile: 99}, " + own, map[string]any{"latency": recorded}, 99.0, true, true},
		"NotYet":    {"A rule of a series that nothing records would never raise it.", "objectives: {latencyMs: 50}, " + own, map[string]any{}, 95.0, false, false},
		"Objective": {"Without an objective nothing is compared.", own, map[string]any{"latency": recorded}, nil, false, false},
		"Scaled": {
			"The autoscaler's recording serves both.", "objectives: {latencyMs: 50}, scaling: {maxReplicas: 4, targetLatencyMs: 40}, " + own,
			map[string]any{"scaling": map[string]any{"signal": "CPU", "expressions": recorded}},
			nil, true, true,
		},
		"BuiltIn": {"The platform's rules record it.", "objectives: {latencyMs: 50}, metrics: {}", map[string]any{}, nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := serving(t, "{image: x, "+tc.spec+"}")
			w.analysis(tc.reported)
			p := w.plan()
			asks := compose.Map(object(t, p, names.Analysis), "spec", "forProvider", "metrics")["recordLatency"]
			if diff := cmp.Diff(tc.asks, asks); diff != "" {
				t.Errorf("%s recordLatency: -want, +got:\n%s", tc.reason, diff)
			}
			var rules string
			if o := p.Objects[names.Rules]; o.Object != nil {
				rules = fmt.Sprint(object(t, p, names.Rules)["spec"])
			}
			if got := strings.Contains(rules, "record:capstan:own_latency_ms"); got != tc.records {
				t.Errorf("%s recorded: %v, want %v: %s", tc.reason, got, tc.records, rules)
			}
			if got := strings.Contains(rules, "AlgorithmLatencyAboveTarget"); got != tc.alert {
				t.Errorf("%s alert: %v, want %v: %s", tc.reason, got, tc.alert, rules)
			}
			if tc.alert && tc.records && !strings.Contains(rules, "max(capstan:own_latency_ms{") {
				t.Errorf("%s the alert reads another series than is recorded: %s", tc.reason, rules)
			}
		})
	}
}

// TestReadWriteOnce: ReadWriteOnce.
func TestReadWriteOnce(t *testing.T) {
	w := serving(t, `{image: x, replicas: 3, model: {uri: s3://bbb/c, cache: {resources: {requests: {storage: 1Gi}}, accessModes: [ReadWriteOnce]}}}`)
	s := compose.Map(object(t, w.plan(), names.Deployment(names.SlotA)), "spec", "template", "spec")
	if compose.Map(s, "affinity", "podAffinity") == nil {
		t.Errorf("nothing keeps replicas on one node, and this spreads them: %v", s["topologySpreadConstraints"])
	}
}

// TestLiveBroken: callers stay where nobody serves.
func TestLiveBroken(t *testing.T) {
	w := serving(t, "{image: x, replicas: 3}")
	none := func(s map[string]any) { s["availableReplicas"], s["readyReplicas"] = 0.0, 0.0 }
	w.run(none)
	w.edit("{image: fixed, replicas: 3}")
	w.compose(w.plan())
	w.run(none)
	w.runIn(names.SlotB, func(s map[string]any) { s["availableReplicas"], s["readyReplicas"] = 2.0, 2.0 })
	if got := scene(t, w.plan()); !strings.HasSuffix(got, "callers=b") {
		t.Errorf("no pod of a serves and two of b do: %s", got)
	}
}

// 36 as many as live has TestFirstPartly: a first revision that serves with fewer.
func TestFirstPartly(t *testing.T) {
	w := newWorld(t, "{image: x, replicas: 3}")
	w.compose(w.plan())
	w.compose(w.plan())
	w.run(func(s map[string]any) { s["availableReplicas"], s["readyReplicas"] = 2.0, 2.0 })
	w.compose(w.plan())
	w.edit("{image: z, replicas: 3}")
	if got, want := scene(t, w.plan()), "a=x*3 b=z*3 callers=a"; got != want {
		t.Errorf("two pods serve callers, and an edit replaces them in place: got %s want %s", got, want)
	}
}

// 38 the gateway is edited while the old controller's word lingers TestGatewayGone: a Gateway's controller that is gone blocks
// every edit, and the words do not say so.
func TestGatewayGone(t *testing.T) {
	const spec = "{image: %s, route: {gateway: {name: g}}}"
	w := serving(t, fmt.Sprintf(spec, "x"))
	w.accept()
	w.edit(fmt.Sprintf(spec, "z"))
	w.compose(w.plan())
	w.runIn(names.SlotB, nil)
	w.compose(w.plan()) // over; from here on the controller is silent
	w.later(48 * time.Hour)
	w.edit(fmt.Sprintf(spec, "v"))
	p := w.plan()
	c := condition(p, v1alpha1.TypeUpdated)
	if c.Reason == v1alpha1.ReasonAwaitingDrain && !strings.Contains(c.Message, "Gateway") {
		t.Error("does not name the Gateway")
	}
}

func aliasOf(t *testing.T, w *world) string {
	t.Helper()
	p := w.plan()
	for r := range p.Objects {
		if strings.HasPrefix(r, names.ModelAliasPrefix) {
			return compose.Text(object(t, p, r), "spec", "forProvider", "version")
		}
	}
	return ""
}

// 1 now: how it goes in passes TestFirstSize: first size.
func TestFirstSize(t *testing.T) {
	const spec = "{image: %s, replicas: 5, scaling: {minReplicas: 1, maxReplicas: 9}}"
	w := newWorld(t, fmt.Sprintf(spec, "x"))
	w.compose(w.plan())
	w.compose(w.plan())
	w.run(func(s map[string]any) { s["availableReplicas"], s["readyReplicas"] = 0.0, 0.0 })
	w.edit(fmt.Sprintf(spec, "z"))
	for range 3 {
		p := w.plan()
		w.compose(p)
		w.run(func(s map[string]any) { s["availableReplicas"], s["readyReplicas"] = 0.0, 0.0 })
	}
	if got := scene(t, w.plan()); got != "a=z*5 callers=a" {
		t.Errorf("first size: %s", got)
	}
}

// TestIdleSlotRestored: a tool that restored a backup owns the fields of an idle Deployment, and Crossplane none of them.
func TestIdleSlotRestored(t *testing.T) {
	w := serving(t, "{image: v, replicas: 2}")
	w.edit("{image: z, replicas: 2}")
	w.update()
	w.later(time.Hour)
	w.update()
	if w.occupied(names.SlotA) || w.request.Observed[names.Deployment(names.SlotA)] == nil {
		t.Fatal("slot a should be idle")
	}
	owned := map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{"f:" + names.AnnotationIdle: map[string]any{}}}}
	w.change(names.Deployment(names.SlotA), func(o composetest.Object) {
		compose.Map(o, "metadata")["managedFields"] = []any{map[string]any{
			"manager": "restore", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": owned,
		}}
	})
	p := w.plan()
	o, err := composetest.Decode(p.Objects[names.Deployment(names.SlotA)].Object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"replicas": 0.0}, o["spec"]); diff != "" {
		t.Errorf("it stays without replicas. Spec: -want, +got:\n%s", diff)
	}

	// The next revision runs there, although the annotation stays with its owner.
	w.edit("{image: x, replicas: 2}")
	w.compose(w.plan())
	w.change(names.Deployment(names.SlotA), func(o composetest.Object) {
		compose.Map(o, "metadata", "annotations")[names.AnnotationIdle] = "true"
	})
	w.runIn(names.SlotA, nil)
	w.compose(w.plan())
	w.compose(w.plan())
	if s := w.plan().Status; !w.occupied(names.SlotA) || compose.Text(map[string]any{"s": s}, "s", "revision", "slot") == names.SlotB {
		t.Errorf("the next revision should be seen in slot a: %v", s)
	}
}
