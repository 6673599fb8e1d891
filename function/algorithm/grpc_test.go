// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
)

// speaking is a spec of a server of gRPC behind a Gateway, with a canary.
const speaking = `{image: x, replicas: 4, port: 9000, protocol: GRPC, probes: {path: /reco.v1.Reco},
  route: {host: reco.example.org, gateway: {name: shared, namespace: gateway}},
  lifecycle: {steps: [10, 40], soak: 1m, bake: 10m, match: [header x-beta=1]}}`

// TestGRPC shows what another protocol changes.
func TestGRPC(t *testing.T) {
	cases := map[string]struct {
		reason   string
		resource string
		path     []string
		want     string
	}{
		"Service": {
			"clients and meshes learn that it is HTTP/2", names.Service,
			[]string{"spec", "ports"},
			"[{name: http, protocol: TCP, port: 80, targetPort: http, appProtocol: kubernetes.io/h2c}]",
		},
		"SlotService": {
			"the Gateway learns it from the Service of the slot", names.SlotService(names.SlotB),
			[]string{"spec", "ports"},
			"[{name: http, protocol: TCP, port: 80, targetPort: http, appProtocol: kubernetes.io/h2c}]",
		},
		"Hosts": {"the host of the spec", names.GRPCRoute, []string{"spec", "hostnames"}, "[reco.example.org]"},
		"Rules": {
			"a rule without a match is for all requests", names.GRPCRoute,
			[]string{"spec", "rules"},
			`[{backendRefs: [{group: "", kind: Service, name: reco-slot-a, port: 80, weight: 100}, {group: "", kind: Service, name: reco-slot-b, port: 80, weight: 0}]}]`,
		},
	}
	p := newWorld(t, speaking).plan()
	if p.Objects[names.Route].Object != nil {
		t.Error("there is also an HTTPRoute")
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got any = map[string]any(object(t, p, tc.resource))
			for _, k := range tc.path {
				got = got.(map[string]any)[k]
			}
			if diff := cmp.Diff(parse(t, "x: "+tc.want)["x"], got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGRPCProbes(t *testing.T) {
	cases := map[string]struct {
		reason, path, probe, want string
	}{
		"Service": {"the kubelet asks for the service by the number of the port", "path: /reco.v1.Reco", "readinessProbe", "{grpc: {port: 8080, service: reco.v1.Reco}, timeoutSeconds: 5, periodSeconds: 5, failureThreshold: 3}"},
		"Server":  {"or for the whole server", "path: /", "startupProbe", `{grpc: {port: 8080, service: ""}, timeoutSeconds: 2, periodSeconds: 2, failureThreshold: 300}`},
		"Port":    {"without a path nothing is asked of the image", "", "readinessProbe", "{tcpSocket: {port: http}, timeoutSeconds: 5, periodSeconds: 5, failureThreshold: 3}"},
		"Busy":    {"a busy server is not a dead one", "path: /", "livenessProbe", "{tcpSocket: {port: http}, timeoutSeconds: 5, periodSeconds: 10, failureThreshold: 6}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := rendered(t, gathered(t, newWorld(t, "{image: x, protocol: GRPC, probes: {"+tc.path+"}}")))
			got := compose.List(template, "spec", "containers")[0].(map[string]any)[tc.probe]
			if diff := cmp.Diff(parse(t, "x: "+tc.want)["x"], got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// grpcWeights of the last rule, and how many rules there are.
func grpcWeights(tb testing.TB, p *compose.Plan) (a, b any, rules int) {
	tb.Helper()
	all := compose.List(object(tb, p, names.GRPCRoute), "spec", "rules")
	if len(all) == 0 {
		tb.Fatal("there is no rule")
	}
	refs := compose.List(all[len(all)-1].(map[string]any), "backendRefs")
	return refs[0].(map[string]any)["weight"], refs[1].(map[string]any)["weight"], len(all)
}

// TestGRPCCanary shifts traffic by the weights of a GRPCRoute, and takes it back, also while the spec is invalid.
func TestGRPCCanary(t *testing.T) {
	w := serving(t, speaking)
	w.settle()
	w.edit(strings.Replace(speaking, "image: x", "image: z", 1))
	for range 3 {
		w.settle()
	}
	p := w.plan()
	if a, b, rules := grpcWeights(t, p); a != 90.0 || b != 10.0 || rules != 2 {
		t.Fatalf("the first step: weights %v and %v in %d rules, want 90 and 10 in 2: %+v", a, b, rules, rolloutOf(t, p))
	}
	matches := compose.List(compose.List(object(t, p, names.GRPCRoute), "spec", "rules")[0].(map[string]any), "matches")
	if diff := cmp.Diff(parse(t, `x: [{headers: [{type: Exact, name: x-beta, value: "1"}]}]`)["x"], any(matches)); diff != "" {
		t.Errorf("requests with the header: -want, +got:\n%s", diff)
	}
	w.settle()
	w.later(2 * time.Minute)
	w.edit("{image: ''}")
	w.judge("FFFF")
	if a, b, rules := grpcWeights(t, w.plan()); a != 100.0 || b != 0.0 || rules != 1 {
		t.Errorf("a candidate that fails under an invalid spec: weights %v and %v in %d rules, want 100 and 0 in 1", a, b, rules)
	}
}

// TestGRPCRouteMissing shows that a cluster may have HTTPRoutes and no GRPCRoutes.
func TestGRPCRouteMissing(t *testing.T) {
	w := newWorld(t, speaking)
	w.request.Kinds[GRPCRouteGVK] = compose.Unavailable
	p := w.plan()
	if c := condition(p, v1alpha1.TypeRouteAccepted); c.Reason != v1alpha1.ReasonGatewayAPIMissing || !strings.Contains(c.Message, "GRPCRoutes") {
		t.Errorf("RouteAccepted: %s %q", c.Reason, c.Message)
	}
	if p.Objects[names.GRPCRoute].Object != nil || p.Objects[names.Route].Object != nil {
		t.Error("a route is composed although the cluster has no such kind")
	}
}

// TestProtocolChanges shows that one kind of route replaces the other, and what clients inside the cluster use.
func TestProtocolChanges(t *testing.T) {
	const routed = "route: {gateway: {name: shared, namespace: gateway}}}"
	w := serving(t, "{image: x, "+routed)
	if got := statusOf(w.plan()).Endpoint; got != "http://reco.shop.svc" {
		t.Errorf("endpoint: got %s", got)
	}
	w.edit("{image: x}")
	w.update()
	w.edit("{image: x, protocol: GRPC}")
	w.update()
	w.edit("{image: x, protocol: GRPC, " + routed)
	w.update()
	if w.request.Observed[names.GRPCRoute] == nil || w.request.Observed[names.Route] != nil {
		t.Error("there should be a GRPCRoute and no HTTPRoute")
	}
	if got := statusOf(w.plan()).Endpoint; got != "reco.shop.svc:80" {
		t.Errorf("endpoint: got %s", got)
	}
}

func TestGRPCRefused(t *testing.T) {
	for name, tc := range map[string]struct{ fields, path, word string }{
		"ProbePath": {"probes: {path: '/a?b'}", "spec.probes.path", "gRPC health check"},
		"WarmUp":    {"probes: {warmUp: {path: /}}", "spec.probes.warmUp", "until it is warm"},
		"RoutePath": {"route: {path: /a, gateway: {name: a}}", "spec.route.path", "host instead"},
		"Timeout":   {"route: {timeout: 2s, gateway: {name: a}}", "spec.route.timeout", "deadlines"},
		"Mirror":    {"route: {gateway: {name: a}}, lifecycle: {mirrorPercent: 100}", "spec.lifecycle.mirrorPercent", "copy gRPC requests"},
		"Protocol":  {"probes: {}, protocol: HTTP2", "spec.protocol", "HTTP or GRPC"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := "{image: x, protocol: GRPC, " + tc.fields + "}"
			if name == "Protocol" {
				spec = "{image: x, " + tc.fields + "}"
			}
			c := condition(newWorld(t, spec).plan(), v1alpha1.TypeAccepted)
			if c.Status != "False" || !strings.Contains(c.Message, tc.path) || !strings.Contains(c.Message, tc.word) {
				t.Errorf("Accepted: %s %q, want %s and %q", c.Status, c.Message, tc.path, tc.word)
			}
		})
	}
}
