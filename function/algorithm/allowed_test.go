// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// modest is a platform that allows little.
func modest() inputv1alpha1.AlgorithmSettings {
	one := func(name string) []inputv1alpha1.Allowed { return []inputv1alpha1.Allowed{{Name: name}} }
	return inputv1alpha1.AlgorithmSettings{
		Gateway: &v1alpha1.GatewayReference{Name: "shared", Namespace: "gateway"},
		Allowed: inputv1alpha1.AllowedToAlgorithms{
			Hosts: one("*.{namespace}.apps.example.org"), Gateways: one("{namespace}/*"), PriorityClasses: one("batch"),
			ServiceAccounts: one("reader"), Tolerations: one("dedicated=gpu"),
		},
	}
}

// bound the world to what the platform allows.
func (w *world) bound(a inputv1alpha1.AlgorithmSettings) *world {
	w.request.Settings.Algorithm.Gateway, w.request.Settings.Algorithm.Allowed = a.Gateway, a.Allowed
	return w
}

// beyond are values that modest does not allow, and what the message has to have.
var beyond = map[string]struct {
	reason string
	spec   string
	words  []string
}{
	"Host": {
		"A host of others would take their requests.", "{image: x, route: {host: login.example.org}}",
		[]string{"spec.route.host", `"login.example.org"`, "*.shop.apps.example.org", "algorithm.allowed.hosts"},
	},
	"NoHost": {
		"A route without a host takes requests of every host.", "{image: x, route: {}}",
		[]string{"spec.route.host", `""`, "*.shop.apps.example.org", "algorithm.allowed.hosts"},
	},
	"Gateway": {
		"A Gateway of others may be private.", "{image: x, route: {host: a.shop.apps.example.org, gateway: {name: internal, namespace: gateway}}}",
		[]string{"spec.route.gateway", `"gateway/internal"`, "gateway/shared, shop/*", "algorithm.allowed.gateways"},
	},
	"PriorityClass": {
		"A high priority evicts others.", "{image: x, pod: {priorityClassName: system-node-critical}}",
		[]string{"spec.pod.priorityClassName", `"system-node-critical"`, "batch", "algorithm.allowed.priorityClasses"},
	},
	"ServiceAccount": {
		"An account may have rights that the author lacks.", "{image: x, pod: {serviceAccountName: deployer}}",
		[]string{"spec.pod.serviceAccountName", `"deployer"`, "reader", "algorithm.allowed.serviceAccounts"},
	},
	"Toleration": {
		"A toleration leads to nodes of others.", "{image: x, pod: {tolerations: [{key: dedicated, value: gpu}, {operator: Exists}]}}",
		[]string{"spec.pod.tolerations[1]", `"*"`, "dedicated=gpu", "algorithm.allowed.tolerations"},
	},
}

// TestBeyondThePlatform makes nothing of a value that the platform does not allow. What runs with it already stays, and so does what an
// edit would have changed.
func TestBeyondThePlatform(t *testing.T) {
	for name, tc := range beyond {
		t.Run(name, func(t *testing.T) {
			refused := func(w *world, what string) {
				t.Helper()
				p := w.plan()
				c := condition(p, v1alpha1.TypeAccepted)
				if c.Status != "False" || c.Reason != v1alpha1.ReasonInvalidSpec {
					t.Errorf("%s\n%s: Accepted: got %s %s, want False InvalidSpec", tc.reason, what, c.Status, c.Reason)
				}
				for _, word := range tc.words {
					if !strings.Contains(c.Message, word) {
						t.Errorf("%s: message %q lacks %q", what, c.Message, word)
					}
				}
				before := w.request.Observed
				w.compose(p)
				if diff := cmp.Diff(before, w.request.Observed, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s changes what runs: -before, +after:\n%s", what, diff)
				}
			}
			fresh := newWorld(t, tc.spec).bound(modest())
			refused(fresh, "a new Algorithm")
			if len(fresh.request.Observed) > 0 {
				t.Errorf("%s\nit has %d objects", tc.reason, len(fresh.request.Observed))
			}
			edited := serving(t, "{image: x}").bound(modest())
			edited.edit(tc.spec)
			refused(edited, "an edit")

			open := modest()
			open.Allowed = inputv1alpha1.AllowedToAlgorithms{}
			runs := newWorld(t, tc.spec).bound(open)
			runs.compose(runs.plan())
			runs.compose(runs.plan())
			runs.run(nil)
			runs.compose(runs.plan())
			if c := condition(runs.plan(), v1alpha1.TypeAccepted); c.Status != "True" {
				t.Fatalf("without a list everything is allowed, got %s: %s", c.Reason, c.Message)
			}
			refused(runs.bound(modest()), "a list that is set later")
		})
	}
}

// TestWithinThePlatform accepts what the lists have, and what the platform has chosen itself.
func TestWithinThePlatform(t *testing.T) {
	for _, spec := range []string{
		"{image: x}",
		"{image: x, pod: {serviceAccountName: reader, priorityClassName: batch, tolerations: [{key: dedicated, value: gpu}]}}",
		"{image: x, route: {host: reco.shop.apps.example.org}}",
		"{image: x, route: {host: '*.shop.apps.example.org', gateway: {name: shared, namespace: gateway, sectionName: web}}}",
		"{image: x, route: {host: reco.shop.apps.example.org, gateway: {name: own}}}",
	} {
		if c := condition(newWorld(t, spec).bound(modest()).plan(), v1alpha1.TypeAccepted); c.Status != "True" {
			t.Errorf("%s: %s: %s", spec, c.Reason, c.Message)
		}
	}
}
