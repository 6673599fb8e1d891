// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

const service = `
apiVersion: v1
kind: Service
metadata:
  name: reco
  labels: {capstan.dev/algorithm: reco}
spec:
  selector: {capstan.dev/algorithm: reco}
  ports:
  - {name: http, protocol: TCP, port: 80, targetPort: http}
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: reco-a
  annotations: {capstan.dev/revision: "0123456789"}
spec:
  replicas: 3
  selector: {matchLabels: {app: reco}}
  template:
    metadata: {labels: {app: reco}}
    spec:
      containers:
      - name: algorithm
        image: reco:1
        args: [--fast, --fast]
        env:
        - {name: A, value: "1"}
        - {name: B, value: "2"}
        ports:
        - {name: http, protocol: TCP, containerPort: 8080}
        resources: {requests: {cpu: 250m}}
      volumes:
      - {name: scratch, emptyDir: {}}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        matchLabelKeys: [pod-template-hash]
`

func TestKeep(t *testing.T) {
	server := composetest.NewServer()

	// other is applied over the object by another manager.
	cases := map[string]struct {
		reason  string
		applied string
		other   string
		want    string
	}{
		"WhatWasApplied": {
			reason:  "what Crossplane applied is kept to the letter, lists included",
			applied: deployment,
			want:    deployment,
		},
		"FieldsOfOthers": {
			reason:  "what others add is theirs, even within our maps and lists",
			applied: service,
			other: `
apiVersion: v1
kind: Service
metadata: {name: reco, labels: {team: shop}, finalizers: [example.org/wait]}
spec:
  sessionAffinity: ClientIP
  ports:
  - {name: grpc, protocol: TCP, port: 9000}
`,
			want: service,
		},
		"FieldsTakenByOthers": {
			reason:  "what another took over by force is no longer ours",
			applied: service,
			other: `
apiVersion: v1
kind: Service
metadata: {name: reco}
spec:
  ports:
  - {name: http, protocol: TCP, port: 80, targetPort: 8080}
`,
			want: `
apiVersion: v1
kind: Service
metadata:
  name: reco
  labels: {capstan.dev/algorithm: reco}
spec:
  selector: {capstan.dev/algorithm: reco}
  ports:
  - {name: http, protocol: TCP, port: 80}
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed, err := server.Compose(nil, &compose.Plan{Objects: map[string]compose.Desired{"x": {Object: parse(t, tc.applied)}}})
			if err != nil {
				t.Fatal(err)
			}
			live := observed["x"]
			if tc.other != "" {
				if live, err = server.Apply(live, parse(t, tc.other), "somebody"); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(map[string]any(parse(t, tc.want)), compose.Keep(live)); diff != "" {
				t.Errorf("%s\nKeep: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKeepWithoutAccount(t *testing.T) {
	cases := map[string]struct {
		reason string
		live   string
		want   string
	}{
		"Preview": {
			reason: "an object without an account is kept whole but for what only the API server writes",
			live: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: reco-config-0
  namespace: shop
  uid: 4711
  resourceVersion: "7"
  generation: 1
  creationTimestamp: "2026-11-20T12:00:00Z"
  ownerReferences: [{kind: Algorithm, name: reco}]
  labels: {crossplane.io/composite: reco, mine: "1"}
  annotations: {crossplane.io/composition-resource-name: config-0}
data: {a: b}
status: {phase: x}
`,
			want: `
apiVersion: v1
kind: ConfigMap
metadata: {name: reco-config-0, labels: {mine: "1"}}
data: {a: b}
`,
		},
		"NotOurs": {
			reason: "an object in whose account we do not appear is kept by name, and nothing of it becomes ours",
			live: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: reco-config-0
  managedFields:
  - {manager: kubectl, operation: Apply, apiVersion: v1, fieldsV1: {"f:data": {"f:a": {}}}}
data: {a: b}
`,
			want: `
apiVersion: v1
kind: ConfigMap
metadata: {name: reco-config-0}
`,
		},
		"Sets": {
			reason: "of a set we keep our values, and a selector that is none means nothing",
			live: `
apiVersion: example.org/v1
kind: Example
metadata:
  name: x
  managedFields:
  - manager: apiextensions.crossplane.io/composed/1
    operation: Apply
    apiVersion: example.org/v1
    fieldsV1: {"f:spec": {"f:set": {'v:"a"': {}, 'v:2': {}, 'v:{}': {}, 'k:[]': {}, 'k:{"n":{}}': {}, 'k:': {}, "x": {}, "i:0": {}}}}
spec: {set: [a, b, 1, 2, {}, {n: {}}]}
`,
			want: `
apiVersion: example.org/v1
kind: Example
metadata: {name: x}
spec: {set: [a, 2]}
`,
		},
		"OtherEntries": {
			reason: "updates, subresources and other versions of ours do not count",
			live: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: reco-config-0
  managedFields:
  - {manager: apiextensions.crossplane.io/composed/1, operation: Update, apiVersion: v1, fieldsV1: {"f:data": {"f:a": {}}}}
  - {manager: apiextensions.crossplane.io/composed/1, operation: Apply, subresource: status, apiVersion: v1, fieldsV1: {"f:data": {"f:b": {}}}}
  - {manager: apiextensions.crossplane.io/composed/1, operation: Apply, apiVersion: v0, fieldsV1: {"f:data": {"f:c": {}}}}
  - {manager: apiextensions.crossplane.io/composed/1, operation: Apply, apiVersion: v1, fieldsV1: {"f:data": {"f:d": {}}}}
data: {a: a, b: b, c: c, d: d}
`,
			want: `
apiVersion: v1
kind: ConfigMap
metadata: {name: reco-config-0}
data: {d: d}
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(map[string]any(parse(t, tc.want)), compose.Keep(parse(t, tc.live))); diff != "" {
				t.Errorf("%s\nKeep: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOwnsField(t *testing.T) {
	live := parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  managedFields:
  - {manager: m, operation: Update, subresource: scale, fieldsV1: {"f:spec": {"f:replicas": {}}}}
  - {manager: m, operation: Update, subresource: status, fieldsV1: {"f:status": {"f:replicas": {}}}}
`)
	cases := map[string]struct {
		reason      string
		subresource string
		path        []string
		want        bool
	}{
		"Owned":            {"scale owns the number", "scale", []string{"spec", "replicas"}, true},
		"OtherField":       {"scale owns nothing else", "scale", []string{"spec", "paused"}, false},
		"OtherSubresource": {"status does not own the spec", "status", []string{"spec", "replicas"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := compose.OwnsField(live, tc.subresource, tc.path...); got != tc.want {
				t.Errorf("%s\nOwnsField: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func parse(t *testing.T, text string) composetest.Object {
	t.Helper()
	var o composetest.Object
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}
