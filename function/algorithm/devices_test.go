// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/podspec"
)

// TestDeviceClaim is what a replica claims of a DRA driver, and how its container gets it.
func TestDeviceClaim(t *testing.T) {
	w := newWorld(t, `{image: x, scaling: {maxReplicas: 3}, resources: {deviceRequest: {deviceClassName: gpu.example.com, count: 2,
	  selectors: [{cel: {expression: "device.attributes['gpu.example.com'].product == 'EX-100'"}}]}}}`)
	p := w.plan()
	claims := resourcesOf(p, names.ClaimPrefix)
	if len(claims) != 1 {
		t.Fatalf("claims: got %v, want one", claims)
	}
	template := object(t, p, claims[0])
	want := parse(t, `{spec: {devices: {requests: [{name: devices, exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 2,
	  selectors: [{cel: {expression: "device.attributes['gpu.example.com'].product == 'EX-100'"}}]}}]}},
	  metadata: {labels: {app.kubernetes.io/name: reco, app.kubernetes.io/managed-by: capstan, capstan.dev/algorithm: reco}}}`)
	if diff := cmp.Diff(want, template["spec"]); diff != "" {
		t.Errorf("what a replica claims: -want, +got:\n%s", diff)
	}
	w.compose(p)
	pod := compose.Map(object(t, w.plan(), names.Deployment(names.SlotA)), "spec", "template", "spec")
	claim := []any{map[string]any{"name": "devices", "resourceClaimTemplateName": compose.Text(template, "metadata", "name")}}
	if diff := cmp.Diff(claim, compose.List(pod, "resourceClaims")); diff != "" {
		t.Errorf("claims of the pod: -want, +got:\n%s", diff)
	}
	resources := compose.Map(compose.List(pod, "containers")[0].(map[string]any), "resources")
	usual := parse(t, `{claims: [{name: devices}], requests: {cpu: "1", memory: 4Gi}}`)
	if diff := cmp.Diff(usual, resources); diff != "" {
		t.Errorf("The container uses the claim, and has the usual size beside a GPU: -want, +got:\n%s", diff)
	}
}

// TestDeviceClaimChange keeps the template of a claim as long as a revision that is kept uses it: Kubernetes makes the claim of a
// pod that is started again by it.
func TestDeviceClaimChange(t *testing.T) {
	lingers(t, names.ClaimPrefix, "resources: {deviceRequest: {deviceClassName: gpu.example.com}}", "resources: {deviceRequest: {deviceClassName: gpu.example.com, count: 2}}")
}

// TestNoDeviceClaims changes nothing for a claim that the cluster does not serve: to compose it would end Crossplane's whole pass.
func TestNoDeviceClaims(t *testing.T) {
	w := serving(t, "{image: x}")
	w.request.Kinds[podspec.ClaimTemplateGVK] = compose.Unavailable
	running := object(t, w.plan(), names.Deployment(names.SlotA))
	w.edit("{image: x, resources: {deviceRequest: {deviceClassName: gpu.example.com}}}")
	p := w.plan()
	c := condition(p, v1alpha1.TypeAccepted)
	for _, word := range []string{"spec.resources.deviceRequest.deviceClassName", "gpu.example.com", "1.34", "spec.resources.gpu"} {
		if c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, word) {
			t.Errorf("Accepted: got %s %q, want a message with %q", c.Status, c.Message, word)
		}
	}
	if got := resourcesOf(p, names.ClaimPrefix); len(got) > 0 {
		t.Errorf("claims: got %v, want none", got)
	}
	template := func(o map[string]any) any { return compose.Map(o, "spec", "template") }
	if diff := cmp.Diff(template(running), template(object(t, p, names.Deployment(names.SlotA)))); diff != "" {
		t.Errorf("pods that serve changed: -want, +got:\n%s", diff)
	}
	w.request.Kinds[podspec.ClaimTemplateGVK] = compose.Available
	if c := condition(w.plan(), v1alpha1.TypeAccepted); c.Status != corev1.ConditionTrue {
		t.Errorf("Accepted after the upgrade: got %s %q", c.Status, c.Message)
	}
}
