// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// servingAccepted are Algorithms with the fields that serve: scaling, metrics, probes, route, access.
func servingAccepted() map[string]map[string]any {
	objects := map[string]map[string]any{}
	for name, text := range map[string]string{
		"SecretWithDots":        `secrets: [{name: reco.license}]`,
		"MIG":                   `resources: {gpu: nvidia.com/mig-1g.10gb, gpuProducts: [NVIDIA-A100-SXM4-40GB]}`,
		"DeviceClass":           `resources: {deviceRequest: {deviceClassName: gpu.nvidia.com, count: 2, selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]}}`,
		"LatencyTarget":         `scaling: {maxReplicas: 10, targetLatencyMs: 50}`,
		"LatencyTargetBySignal": `scaling: {maxReplicas: 10, targetLatencyMs: 50, signal: InFlight}`,
		"InFlightPerReplica":    `scaling: {maxReplicas: 10, signal: InFlight, perReplica: 6}`,
		"RatePerReplica":        `scaling: {maxReplicas: 10, signal: RequestRate, perReplica: 0.5}`,
		"OwnQuery":              `{scaling: {maxReplicas: 10, signal: Query, perReplica: 20}, metrics: {queries: [{name: load, query: sum(queue_length)}]}}`,
		"AutoSignal":            `scaling: {maxReplicas: 10, signal: Auto}`,
		"CPUSignal":             `scaling: {maxReplicas: 10, signal: CPU}`,
		"ShrinkAtOnce":          `scaling: {maxReplicas: 10, scaleDownAfterSeconds: 0}`,
		"MetricsByDefault":      `metrics: {}`,
		"LongestWindow":         `metrics: {window: 6h}`,
		"ShortestWindow":        `metrics: {window: 20s}`,
		"OwnQueries":            `metrics: {queries: [{name: requests, query: r}, {name: failures, query: f}, {name: latency, query: l}, {name: in-flight, query: i}, {name: outputs, query: o}]}`,
		"CheckOneValue":         `metrics: {queries: [{name: queue, query: avg(q), min: 1, max: 1}]}`,
		"CheckZero":             `metrics: {queries: [{name: queue, query: avg(q), max: 0}]}`,
		"CheckBelowZero":        `metrics: {queries: [{name: skew, appliesTo: Live, query: avg(q), min: -0.5}]}`,
		"ProbePath":             `probes: {path: "/health?deep=1", startupSeconds: 7200}`,
		"WarmUpByGet":           `probes: {warmUp: {path: /}}`,
		"WarmUpText":            `probes: {warmUp: {path: /predict, body: "läuft", contentType: "text/plain; charset=utf-8"}}`,
		"RouteByDefault":        `route: {}`,
		"RouteOfManyHosts":      `route: {host: "*.example.org", path: /v2/models/reco, timeout: 500ms}`,
		"RouteOwnGateway":       `route: {gateway: {name: shared}}`,
		"AccessNobody":          `access: []`,
		"AccessEverybody":       `access: [{namespace: "*"}]`,
		"AccessSome":            `access: [{}, {podLabels: {app: web}}, {namespace: shop-2, podLabels: {app.kubernetes.io/name: ""}}]`,
		"LongDrain":             `availability: {drainSeconds: 3600}`,
		"NoHistory":             `revisionHistoryLimit: 0`,
		"GRPC":                  `{protocol: GRPC, probes: {path: /reco.v1.Reco}, route: {host: reco.example.org}}`,
		"GRPCWholeServer":       `{protocol: GRPC, probes: {path: /}, route: {path: /}}`,
	} {
		objects[name] = smallest(spec(text))
	}
	return objects
}

// servingRefused are Algorithms with mistakes in those fields.
func servingRefused() map[string]refused {
	const (
		object = "must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
		label  = "must be the value of a label: letters, digits, '-', '_' and '.', with a letter or digit at both ends"
		folder = "must be an absolute path without ':', other than / and /dev/shm"
		check  = "must be lower case letters, digits and '-', start with a letter and end with a letter or digit"
		plain  = "must be an absolute path of a URL, without a query"
		asked  = "must be an absolute path of a URL"
		load   = "signal Query and the query load in metrics.queries need each other: set both or neither"
	)
	scaling := func(text string) map[string]any { return smallest(spec(`scaling: {maxReplicas: 10, ` + text + `}`)) }
	metrics := func(text string) map[string]any { return smallest(spec(`metrics: {` + text + `}`)) }
	checks := func(text string) map[string]any { return smallest(spec(`metrics: {queries: [` + text + `]}`)) }

	return map[string]refused{
		"UnknownProtocol": {
			reason: "The choices are named.",
			object: smallest(spec(`protocol: HTTP2`)),
			want:   []string{`spec.protocol: Unsupported value: "HTTP2": supported values: "HTTP", "GRPC"`},
		},
		"GRPCProbeOfQuery": {
			reason: "No service has such a name.",
			object: smallest(spec(`{protocol: GRPC, probes: {path: "/a?b"}}`)),
			want: []string{"spec.probes.path: Invalid value: must be / and the service of the gRPC health check with protocol GRPC: " +
				"/ for the whole server, or for instance /reco.v1.Reco"},
		},
		"GRPCWarmUp": {
			reason: "The companion sends HTTP requests.",
			object: smallest(spec(`{protocol: GRPC, probes: {warmUp: {path: /}}}`)),
			want: []string{"spec.probes.warmUp: Invalid value: needs protocol HTTP: remove warmUp, and report the server as not serving " +
				"in its gRPC health check until it is warm"},
		},
		"GRPCRoutePath": {
			reason: "A GRPCRoute has no path.",
			object: smallest(spec(`{protocol: GRPC, route: {path: /a}}`)),
			want:   []string{"spec.route.path: Invalid value: must be / with protocol GRPC: a GRPCRoute has no path, choose a host instead"},
		},
		"GRPCRouteTimeout": {
			reason: "A GRPCRoute has no timeout.",
			object: smallest(spec(`{protocol: GRPC, route: {timeout: 2s}}`)),
			want:   []string{"spec.route.timeout: Invalid value: needs protocol HTTP: a GRPCRoute has no timeout, set deadlines in the clients instead"},
		},
		"GRPCMirror": {
			reason: "No Gateway reports that it can.",
			object: smallest(spec(`{protocol: GRPC, route: {}, lifecycle: {mirrorPercent: 100}}`)),
			want:   []string{"spec.lifecycle.mirrorPercent: Invalid value: needs protocol HTTP: no feature of a Gateway reports whether it can copy gRPC requests"},
		},
		"SecretInUpperCase": {
			reason: "No Secret can have the name.",
			object: smallest(spec(`secrets: [{name: S}]`)),
			want:   []string{`spec.secrets[0].name: Invalid value: "S": ` + object},
		},
		"SecretTwice": {
			reason: "Once is enough.",
			object: smallest(spec(`secrets: [{name: a}, {name: a, rotate: Rolling}]`)),
			want:   []string{`spec.secrets[1]: Duplicate value: {"name":"a"}`},
		},
		"SecretOverRoot": {
			reason: "Nothing of the image would be left.",
			object: smallest(spec(`secrets: [{name: a}]
volumeMounts: [{name: secret-a, mountPath: /}]`)),
			want: []string{`spec.volumeMounts[0].mountPath: Invalid value: "/": ` + folder},
		},
		"UnknownRotation": {
			reason: "The choices are named.",
			object: smallest(spec(`secrets: [{name: a, rotate: Always}]`)),
			want:   []string{`spec.secrets[0].rotate: Unsupported value: "Always": supported values: "Restartless", "Rolling"`},
		},
		"ProductsAlone": {
			reason: "Whose products?",
			object: smallest(spec(`resources: {gpuProducts: [A100]}`)),
			want:   []string{"spec.resources.gpuProducts: Invalid value: gpuProducts needs gpu: name the resource of the GPU as nodes advertise it, for instance nvidia.com/gpu"},
		},
		"ProductInWords": {
			reason: "No node can have the label.",
			object: smallest(spec(`resources: {gpu: nvidia.com/gpu, gpuProducts: [A100 40GB]}`)),
			want:   []string{`spec.resources.gpuProducts[0]: Invalid value: "A100 40GB": ` + label},
		},
		"TwoKindsOfGPU": {
			reason: "Which of the two?",
			object: smallest(spec(`resources: {gpu: nvidia.com/gpu, deviceRequest: {deviceClassName: gpu.nvidia.com}}`)),
			want: []string{"spec.resources.deviceRequest: Invalid value: deviceRequest and gpu exclude each other: remove gpu to claim devices of a DRA " +
				"driver, or deviceRequest to request an extended resource"},
		},
		"SelectorsAlone": {
			reason: "Of which class?",
			object: smallest(spec(`resources: {deviceRequest: {selectors: [{cel: {expression: "true"}}]}}`)),
			want:   []string{"spec.resources.deviceRequest.deviceClassName: Required value"},
		},
		"ClassInWords": {
			reason: "No DeviceClass can have the name.",
			object: smallest(spec(`resources: {deviceRequest: {deviceClassName: Big GPU}}`)),
			want:   []string{`spec.resources.deviceRequest.deviceClassName: Invalid value: "Big GPU": must be the name of a DeviceClass, for instance gpu.nvidia.com`},
		},
		"SignalWithoutMeasure": {
			reason: "How much of it does a replica bear?",
			object: scaling(`signal: InFlight`),
			want: []string{"spec.scaling.signal: Invalid value: signal InFlight or RequestRate needs the load for one replica: " +
				"set perReplica, or targetLatencyMs to learn it"},
		},
		"QueryWithoutSignal": {
			reason: "Nothing would look at it.",
			object: metrics(`queries: [{name: load, query: sum(queue)}]`),
			want:   []string{"spec.scaling.signal: Invalid value: " + load},
		},
		"SignalWithoutQuery": {
			reason: "Which query?",
			object: scaling(`signal: Query, perReplica: 2`),
			want:   []string{"spec.scaling.signal: Invalid value: " + load},
		},
		"QueryWithoutMeasure": {
			reason: "How much of it does a replica bear?",
			object: smallest(spec(`{scaling: {maxReplicas: 10, signal: Query}, metrics: {queries: [{name: load, query: sum(queue)}]}}`)),
			want:   []string{"spec.scaling.perReplica: Invalid value: signal Query needs perReplica: set it to the load for one replica, in the unit of the query"},
		},
		"MeasureWithoutSignal": {
			reason: "Six of what?",
			object: scaling(`perReplica: 6`),
			want:   []string{"spec.scaling.perReplica: Invalid value: perReplica needs a unit: set signal to InFlight, RequestRate or Query"},
		},
		"MeasureZero": {
			reason: "No number of replicas would be enough.",
			object: scaling(`signal: InFlight, perReplica: 0`),
			want:   []string{"spec.scaling.perReplica: Invalid value: 0: must be at least 0.001"},
		},
		"UnknownSignal": {
			reason: "The choices are named.",
			object: scaling(`signal: Memory`),
			want:   []string{`spec.scaling.signal: Unsupported value: "Memory": supported values: "Auto", "InFlight", "RequestRate", "CPU", "Query"`},
		},
		"LatencyZero": {
			reason: "Nothing is that fast.",
			object: scaling(`targetLatencyMs: 0`),
			want:   []string{"spec.scaling.targetLatencyMs: Invalid value: 0: spec.scaling.targetLatencyMs in body should be greater than or equal to 1"},
		},
		"ShrinkTooLate": {
			reason: "The bound is named.",
			object: scaling(`scaleDownAfterSeconds: 3601`),
			want:   []string{"spec.scaling.scaleDownAfterSeconds: Invalid value: 3601: spec.scaling.scaleDownAfterSeconds in body should be less than or equal to 3600"},
		},
		"MetricsPort": {
			reason: "The bound is named.",
			object: metrics(`port: 0`),
			want:   []string{"spec.metrics.port: Invalid value: 0: spec.metrics.port in body should be greater than or equal to 1"},
		},
		"MetricsPath": {
			reason: "Prometheus would ask for something else.",
			object: metrics(`path: "/metrics?a=b"`),
			want:   []string{`spec.metrics.path: Invalid value: "/metrics?a=b": ` + plain},
		},
		"ShortWindow": {
			reason: "Prometheus scrapes no faster.",
			object: metrics(`window: 10s`),
			want:   []string{`spec.metrics.window: Invalid value: "10s": must be a time from 20s to 6h, for instance 2m`},
		},
		"LongWindow": {
			reason: "The bound is named.",
			object: metrics(`window: 7h`),
			want:   []string{`spec.metrics.window: Invalid value: "7h": must be a time from 20s to 6h, for instance 2m`},
		},
		"MetricsConfigKind": {
			reason: "The choices are named.",
			object: metrics(`providerConfigRef: {kind: Secret, name: a}`),
			want:   []string{`spec.metrics.providerConfigRef: Invalid value: providerConfigRef.kind: Secret is neither ProviderConfig nor ClusterProviderConfig`},
		},
		"MetricsConfigName": {
			reason: "No config can have the name.",
			object: metrics(`providerConfigRef: {kind: ProviderConfig, name: A}`),
			want: []string{`spec.metrics.providerConfigRef: Invalid value: providerConfigRef.name: A is not the name of a config: ` +
				`at most 63 lower case letters, digits, - and .`},
		},
		"CheckOfNothing": {
			reason: "It could not fail.",
			object: checks(`{name: queue, query: avg(q)}`),
			want:   []string{"spec.metrics.queries[0]: Invalid value: min, max: set at least one, otherwise nothing is checked"},
		},
		"CheckBoundsCrossed": {
			reason: "It could not pass.",
			object: checks(`{name: queue, query: avg(q), min: 2, max: 1}`),
			want:   []string{"spec.metrics.queries[0].min: Invalid value: min must not be above max: lower min or raise max"},
		},
		"CheckName": {
			reason: "It becomes part of a status.",
			object: checks(`{name: Queue, query: avg(q), min: 2}`),
			want:   []string{`spec.metrics.queries[0].name: Invalid value: "Queue": ` + check},
		},
		"CheckBuiltIn": {
			reason: "There would be two of the name.",
			object: checks(`{name: request-rate, query: avg(q), min: 2}`),
			want: []string{`spec.metrics.queries[0].name: Invalid value: "request-rate": must not be the name of a built-in check ` +
				`(success, success-against-baseline, latency-against-baseline, drift, data-drift, request-rate, time-to-first-token, time-per-output-token, tokens-per-second, requests-waiting, cache-use): choose another`},
		},
		"CheckOfKnown": {
			reason: "The objectives have its bounds.",
			object: checks(`{name: latency, query: l, max: 2}`),
			want: []string{"spec.metrics.queries[0]: Invalid value: min, max: requests, failures, latency, in-flight, outputs and load replace a query of Capstan, " +
				"and have no bounds: remove them, or choose another name for a check"},
		},
		"CheckTwice": {
			reason: "Which one holds?",
			object: checks(`{name: a, query: b, min: 2}, {name: a, query: c, min: 2}`),
			want:   []string{`spec.metrics.queries[1]: Duplicate value: {"name":"a"}`},
		},
		"ProbePath": {
			reason: "The form is named.",
			object: smallest(spec(`probes: {path: healthz}`)),
			want:   []string{`spec.probes.path: Invalid value: "healthz": ` + asked},
		},
		"StartupTooShort": {
			reason: "The bound is named.",
			object: smallest(spec(`probes: {startupSeconds: 1}`)),
			want:   []string{"spec.probes.startupSeconds: Invalid value: 1: spec.probes.startupSeconds in body should be greater than or equal to 10"},
		},
		"WarmUpWithoutPath": {
			reason: "What should be asked for?",
			object: smallest(spec(`probes: {warmUp: {}}`)),
			want:   []string{"spec.probes.warmUp.path: Required value"},
		},
		"WarmUpPath": {
			reason: "The form is named.",
			object: smallest(spec(`probes: {warmUp: {path: "http://reco"}}`)),
			want:   []string{`spec.probes.warmUp.path: Invalid value: "http://reco": ` + asked},
		},
		"WarmUpType": {
			reason: "The form is named.",
			object: smallest(spec(`probes: {warmUp: {path: /, contentType: json}}`)),
			want:   []string{`spec.probes.warmUp.contentType: Invalid value: "json": must be a media type, for instance application/json`},
		},
		"WarmUpBody": {
			reason: "The bound is named.",
			object: smallest(spec(`probes: {warmUp: {path: /, body: "` + strings.Repeat("x", 16385) + `"}}`)),
			want:   []string{"spec.probes.warmUp.body: Too long: may not be more than 16384 bytes"},
		},
		"RouteHost": {
			reason: "The Gateway API would refuse it.",
			object: smallest(spec(`route: {host: Reco.example.org}`)),
			want: []string{`spec.route.host: Invalid value: "Reco.example.org": must be a host name in lower case, which may begin with '*.', ` +
				`for instance reco.example.org`},
		},
		"RoutePath": {
			reason: "The Gateway API would refuse it.",
			object: smallest(spec(`route: {path: /a//b}`)),
			want:   []string{`spec.route.path: Invalid value: "/a//b": must be an absolute path of a URL, without a query, '//', %2f, and the segments . and ..`},
		},
		"RouteTimeout": {
			reason: "The bound is named.",
			object: smallest(spec(`route: {timeout: 2h}`)),
			want:   []string{`spec.route.timeout: Invalid value: "2h": must be a time from 1ms to 1h, for instance 2s`},
		},
		"GatewayName": {
			reason: "No Gateway can have the name.",
			object: smallest(spec(`route: {gateway: {name: A}}`)),
			want:   []string{`spec.route.gateway.name: Invalid value: "A": ` + object},
		},
		"GatewayNamespace": {
			reason: "No namespace can have the name.",
			object: smallest(spec(`route: {gateway: {name: a, namespace: b.c}}`)),
			want: []string{`spec.route.gateway.namespace: Invalid value: "b.c": must be the name of a namespace: lower case letters, digits and '-', ` +
				`with a letter or digit at both ends`},
		},
		"GatewaySection": {
			reason: "No listener can have the name.",
			object: smallest(spec(`route: {gateway: {name: a, sectionName: B}}`)),
			want: []string{`spec.route.gateway.sectionName: Invalid value: "B": must be the name of a listener: lower case letters, digits, '-' and '.', ` +
				`with a letter or digit at both ends`},
		},
		"AccessForWhom": {
			reason: "Nobody is an empty list.",
			object: smallest(spec(`access: {}`)),
			want:   []string{`spec.access: Invalid value: "object": spec.access in body must be of type array: "object"`},
		},
		"AccessNamespace": {
			reason: "A pattern would be taken for a name.",
			object: smallest(spec(`access: [{namespace: shop-*}]`)),
			want:   []string{`spec.access[0].namespace: Invalid value: "shop-*": must be the name of a namespace, or * for every namespace`},
		},
		"AccessLabel": {
			reason: "No pod can have the label.",
			object: smallest(spec(`access: [{podLabels: {a b: c}}]`)),
			want:   []string{"spec.access[0].podLabels: Invalid value: keys must be label keys, for instance app.kubernetes.io/name"},
		},
		"AccessLabelValue": {
			reason: "No pod can have the label.",
			object: smallest(spec(`access: [{podLabels: {a: b c}}]`)),
			want:   []string{`spec.access[0].podLabels[a]: Invalid value: "b c": ` + label},
		},
		"NoDrain": {
			reason: "Requests would be cut off.",
			object: smallest(spec(`availability: {drainSeconds: 0}`)),
			want:   []string{"spec.availability.drainSeconds: Invalid value: 0: spec.availability.drainSeconds in body should be greater than or equal to 1"},
		},
		"LongHistory": {
			reason: "The bound is named.",
			object: smallest(spec(`revisionHistoryLimit: 11`)),
			want:   []string{"spec.revisionHistoryLimit: Invalid value: 11: spec.revisionHistoryLimit in body should be less than or equal to 10"},
		},
	}
}

// TestAlgorithmChanged shows which changes are refused, however good the object is by itself.
func TestAlgorithmChanged(t *testing.T) {
	a := newAdmission(t, readXRD(t, algorithmXRD))
	cached := func(text string) map[string]any {
		return smallest(spec(`model: {uri: s3://models/reco, cache: ` + text + `}`))
	}
	const autoscaled = "another number has no effect with scaling, where the autoscaler sets it: change scaling.minReplicas or scaling.maxReplicas, " +
		"or set 0, which stops the Algorithm"
	cases := map[string]struct {
		reason        string
		before, after map[string]any
		want          []string
	}{
		"CacheGrows": {
			reason: "Many storage classes let it.",
			before: cached(`{resources: {requests: {storage: 1Gi}}}`),
			after:  cached(`{resources: {requests: {storage: 2147483648}}}`),
		},
		"CacheShrinks": {
			reason: "No volume can.",
			before: cached(`{resources: {requests: {storage: 2Gi}}}`),
			after:  cached(`{resources: {requests: {storage: 1Gi}}}`),
			want:   []string{`spec.model.cache.resources.requests.storage: Invalid value: "1Gi": cannot be lowered: a volume does not shrink`},
		},
		"CacheMoves": {
			reason: "Kubernetes would refuse the claim.",
			before: cached(`{resources: {requests: {storage: 2Gi}}, storageClassName: a}`),
			after:  cached(`{resources: {requests: {storage: 2Gi}}, storageClassName: b}`),
			want:   []string{`spec.model.cache.storageClassName: Invalid value: "b": cannot be changed: a volume stays in its class`},
		},
		"CacheIsShared": {
			reason: "Kubernetes would refuse the claim.",
			before: cached(`{resources: {requests: {storage: 2Gi}}, accessModes: [ReadWriteOnce]}`),
			after:  cached(`{resources: {requests: {storage: 2Gi}}}`),
			want:   []string{`spec.model.cache.accessModes: Invalid value: cannot be changed: a volume keeps its access mode`},
		},
		"NumberOfAutoscaler": {
			reason: "It would have no effect.",
			before: smallest(spec(`{replicas: 3, scaling: {maxReplicas: 9}}`)),
			after:  smallest(spec(`{replicas: 4, scaling: {maxReplicas: 9}}`)),
			want:   []string{`spec.replicas: Invalid value: ` + autoscaled},
		},
		"FirstNumberOfAutoscaler": {
			reason: "It would have no effect either.",
			before: smallest(spec(`{scaling: {maxReplicas: 9}}`)),
			after:  smallest(spec(`{replicas: 4, scaling: {maxReplicas: 9}}`)),
			want:   []string{`spec.replicas: Invalid value: ` + autoscaled},
		},
		"StopAutoscaled": {
			reason: "Zero stops it.",
			before: smallest(spec(`{replicas: 3, scaling: {maxReplicas: 9}}`)),
			after:  smallest(spec(`{replicas: 0, scaling: {maxReplicas: 9}}`)),
		},
		"StartAutoscaled": {
			reason: "And another number starts it again.",
			before: smallest(spec(`{replicas: 0, scaling: {maxReplicas: 9}}`)),
			after:  smallest(spec(`{replicas: 4, scaling: {maxReplicas: 9}}`)),
		},
		"NumberInPlaceOfAutoscaler": {
			reason: "Without scaling the number counts.",
			before: smallest(spec(`{replicas: 3, scaling: {maxReplicas: 9}}`)),
			after:  smallest(spec(`{replicas: 4}`)),
		},
		"ProtocolUnderRoute": {
			reason: "The Gateway would speak it with replicas that do not.",
			before: smallest(spec(`{route: {}}`)),
			after:  smallest(spec(`{route: {}, protocol: GRPC}`)),
			want: []string{"spec.protocol: Invalid value: cannot change while route is set, because the Gateway would send requests of one " +
				"protocol to replicas of the other: remove route, change protocol, and set route again when the new revision is live"},
		},
		"ProtocolWithoutRoute": {
			reason: "Only the new replicas are probed by it.",
			before: smallest(),
			after:  smallest(spec(`{protocol: GRPC}`)),
		},
		"ProtocolThenRoute": {
			reason: "That is the way.",
			before: smallest(spec(`{protocol: GRPC}`)),
			after:  smallest(spec(`{route: {}, protocol: GRPC}`)),
		},
		"CacheGoes": {
			reason: "What is gone has no class.",
			before: cached(`{resources: {requests: {storage: 2Gi}}, storageClassName: a}`),
			after:  smallest(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, errs := a.create(t, tc.before)
			if len(errs) > 0 {
				t.Fatalf("cannot create what is changed: %v", errs)
			}
			if diff := cmp.Diff(tc.want, a.update(t, before, tc.after)); diff != "" {
				t.Errorf("\n%s\nupdate(...): -want errors, +got errors:\n%s", tc.reason, diff)
			}
		})
	}
}
