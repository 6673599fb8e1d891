// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// basic is a request for an Algorithm of a few fields, as a Crossplane sends it that found what is required.
func basic() *fnv1.RunFunctionRequest {
	return request(func(req *fnv1.RunFunctionRequest) {
		req.Observed.Composite = resourceOf(map[string]any{
			"apiVersion": "capstan.dev/v1alpha1",
			"kind":       "Algorithm",
			"metadata": map[string]any{
				"namespace": "demo", "name": "recommendation-engine", "uid": "5d0c1f8e-8a3f-4d51-9d4f-0d6f1f0f7c11",
				"generation": 1, "resourceVersion": "1234", "creationTimestamp": "2026-03-01T11:00:00Z",
			},
			"spec": map[string]any{
				"image": "registry.example.org/algo/reco:2.1.4", "replicas": 2, "port": 8080,
				"resources": map[string]any{"cpu": "500m", "memory": "512Mi"},
				"scaling":   map[string]any{"minReplicas": 2, "maxReplicas": 5},
				"config":    map[string]any{"reco.yaml": "threshold: 0.7"},
			},
		})
		req.RequiredResources = map[string]*fnv1.Resources{requiredSettings: {}}
		req.RequiredSchemas = map[string]*fnv1.Schema{
			requiredAnalysis: {OpenapiV3: structFrom(map[string]any{"type": "object"})},
		}
	})
}

// settled is the request after what the function desires was applied, again and again until it desires nothing else. That is what an
// instance sends from then on, hour by hour.
func settled(tb testing.TB, f *Function, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionRequest {
	tb.Helper()
	var before *fnv1.State
	for range 20 {
		desired := run(tb, f, req).GetDesired()
		if proto.Equal(before, desired) {
			return req
		}
		before, req = desired, applied(tb, f, req)
	}
	tb.Fatal("the function never desires the same twice")
	return nil
}

// applied is the next request after everything that the function desires was applied, and the status of the composite resource was
// written.
func applied(tb testing.TB, f *Function, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionRequest {
	tb.Helper()
	next, desired := proto.CloneOf(req), run(tb, f, req).GetDesired()
	next.Observed.Resources = map[string]*fnv1.Resource{}
	for name, r := range desired.GetResources() {
		next.Observed.Resources[name] = observe(name, r)
	}
	if status := desired.GetComposite().GetResource().GetFields()["status"]; status != nil {
		next.Observed.Composite.Resource.Fields["status"] = status
	}
	return next
}

// observe a desired object as the API server would show it: with what it adds to the metadata, of which managedFields are by far
// the most, and a status.
func observe(name string, desired *fnv1.Resource) *fnv1.Resource {
	m := desired.GetResource().AsMap()
	fieldsV1 := managed(m)
	delete(fieldsV1, "f:apiVersion")
	delete(fieldsV1, "f:kind")
	status := map[string]any{
		"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 2,
		"conditions": []any{
			condition("Available", "MinimumReplicasAvailable"),
			condition("Progressing", "NewReplicaSetAvailable"),
		},
	}
	metadata, ok := m["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
	}
	if _, ok := metadata["name"]; !ok {
		metadata["name"] = "recommendation-engine-" + name
	}
	metadata["namespace"] = "demo"
	metadata["uid"] = "8f14e45f-ceea-467f-a0e6-" + fmt.Sprintf("%012x", len(name))
	metadata["resourceVersion"] = "4711"
	metadata["generation"] = 1
	metadata["creationTimestamp"] = "2026-03-01T11:00:05Z"
	metadata["ownerReferences"] = []any{map[string]any{
		"apiVersion": "capstan.dev/v1alpha1", "kind": "Algorithm", "name": "recommendation-engine",
		"uid": "5d0c1f8e-8a3f-4d51-9d4f-0d6f1f0f7c11", "controller": true, "blockOwnerDeletion": true,
	}}
	metadata["managedFields"] = []any{
		map[string]any{
			"manager": "apiextensions.crossplane.io/composed/0b2e5a", "operation": "Apply", "apiVersion": m["apiVersion"],
			"time": "2026-03-01T11:00:05Z", "fieldsType": "FieldsV1", "fieldsV1": fieldsV1,
		},
		map[string]any{
			"manager": "kube-controller-manager", "operation": "Update", "apiVersion": m["apiVersion"],
			"time": "2026-03-01T11:00:15Z", "fieldsType": "FieldsV1", "subresource": "status",
			"fieldsV1": map[string]any{"f:status": managed(status)},
		},
	}
	m["metadata"], m["status"] = metadata, status
	return resourceOf(m)
}

func condition(kind, reason string) map[string]any {
	return map[string]any{
		"type": kind, "status": "True", "reason": reason, "message": "as it should be",
		"lastTransitionTime": "2026-03-01T11:00:15Z", "lastUpdateTime": "2026-03-01T11:00:15Z",
	}
}

// managed is the set of fields of an object, in the form of managedFields.
func managed(m map[string]any) map[string]any {
	out := map[string]any{".": map[string]any{}}
	for k, v := range m {
		switch v := v.(type) {
		case map[string]any:
			out["f:"+k] = managed(v)
		case []any:
			items := map[string]any{}
			for i, item := range v {
				if o, ok := item.(map[string]any); ok {
					items[fmt.Sprintf(`k:{"name":"%v-%d"}`, o["name"], i)] = managed(o)
				}
			}
			out["f:"+k] = items
		default:
			out["f:"+k] = map[string]any{}
		}
	}
	return out
}
