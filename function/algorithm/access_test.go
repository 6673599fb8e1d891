// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
)

func TestNetworkPolicy(t *testing.T) {
	const (
		http    = "ports: [{port: http, protocol: TCP}]"
		own     = "{from: [{podSelector: {}}], " + http + "}"
		gateway = "{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: gateway}}}], " + http + "}"
		scrape  = "{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}], "
	)
	cases := map[string]struct {
		reason   string
		spec     string
		platform func(*world)
		want     string
	}{
		"Default": {"pods of the namespace", "{image: x}", nil, "[" + own + "]"},
		"Nobody":  {"an empty list lets nobody in", "{image: x, access: []}", nil, "null"},
		"Peers": {
			"by namespace, labels or both",
			`{image: x, access: [{}, {podLabels: {app: web}}, {namespace: checkout}, {namespace: shop, podLabels: {app: web}}, {namespace: "*", podLabels: {a: ""}}]}`,
			nil,
			`[{from: [{podSelector: {}}, {podSelector: {matchLabels: {app: web}}},
			   {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: checkout}}},
			   {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}, podSelector: {matchLabels: {app: web}}},
			   {namespaceSelector: {}, podSelector: {matchLabels: {a: ""}}}], ` + http + "}]",
		},
		"EveryNamespace": {
			"a star is every pod of the cluster", `{image: x, access: [{namespace: "*"}]}`, nil,
			"[{from: [{namespaceSelector: {}}], " + http + "}]",
		},
		"Route": {
			"what serves the Gateway comes from its namespace", "{image: x, route: {gateway: {name: shared, namespace: gateway}}}", nil,
			"[" + own + ", " + gateway + "]",
		},
		"OnlyRoute": {
			"callers come by way of the Gateway alone", "{image: x, access: [], route: {gateway: {name: shared, namespace: gateway}}}", nil,
			"[" + gateway + "]",
		},
		"OwnGateway": {
			"a Gateway without a namespace is in the Algorithm's", "{image: x, access: [], route: {gateway: {name: own}}}", nil,
			"[{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}], " + http + "}]",
		},
		"PlatformsGateway": {
			"a route without a Gateway has the platform's", "{image: x, access: [], route: {}}",
			func(w *world) {
				w.request.Settings.Algorithm.Gateway = &v1alpha1.GatewayReference{Name: "shared", Namespace: "gateway"}
			},
			"[" + gateway + "]",
		},
		"GatewayNamespaces": {
			"the platform knows where its Gateways are served", "{image: x, access: [], route: {gateway: {name: a, namespace: b}}}",
			func(w *world) { w.request.Settings.Algorithm.GatewayNamespaces = []string{"gateway"} },
			"[" + gateway + "]",
		},
		"GatewayOutside": {
			"a Gateway that is served from outside the cluster may come from anywhere", "{image: x, route: {gateway: {name: a, namespace: b}}}",
			func(w *world) { w.request.Settings.Algorithm.GatewayNamespaces = []string{"*"} },
			"[" + own + ", {" + http + "}]",
		},
		"Metrics": {
			"metrics on the callers' port open that port", "{image: x, metrics: {}}", nil,
			"[" + own + ", " + scrape + http + "}]",
		},
		"MetricsPort": {
			"metrics on a port of their own open no other", "{image: x, metrics: {port: 9090}}", nil,
			"[" + own + ", " + scrape + "ports: [{port: 9090, protocol: TCP}]}]",
		},
		"MetricsOfScaling": {
			"scaling that needs metrics has them scraped", "{image: x, scaling: {maxReplicas: 3, targetLatencyMs: 50}}", nil,
			"[" + own + ", " + scrape + http + "}]",
		},
		"NobodyScrapes": {
			"a platform may scrape without the network's help", "{image: x, metrics: {port: 9090}}",
			func(w *world) { w.request.Settings.Algorithm.MetricsNamespaces = nil },
			"[" + own + "]",
		},
		"ScrapedFromOutside": {
			"a Prometheus outside the cluster may come from anywhere", "{image: x, metrics: {port: 9090}}",
			func(w *world) { w.request.Settings.Algorithm.MetricsNamespaces = []string{"*"} },
			"[" + own + ", {ports: [{port: 9090, protocol: TCP}]}]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec).platform()
			if tc.platform != nil {
				tc.platform(w)
			}
			got := compose.Map(object(t, w.plan(), names.NetworkPolicy), "spec")
			want := parse(t, "{podSelector: {matchLabels: {capstan.dev/algorithm: reco}}, policyTypes: [Ingress]}")
			if rules := parse(t, "x: "+tc.want)["x"]; rules != nil {
				want["ingress"] = rules
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nNetworkPolicy: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
