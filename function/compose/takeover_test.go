// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

var networkPolicy = schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}

// algorithmWith refers to an object, unless its name is empty.
func algorithmWith(policy string) composetest.Object {
	xr := composetest.Object{"kind": "Algorithm", "metadata": map[string]any{"name": "reco", "namespace": "shop"}}
	if policy != "" {
		xr["spec"] = map[string]any{"crossplane": map[string]any{"resourceRefs": []any{map[string]any{"kind": "NetworkPolicy", "name": policy}}}}
	}
	return xr
}

func policyWith(metadata map[string]any) composetest.Object {
	metadata["name"] = "reco"
	return composetest.Object{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata}
}

func TestTakeover(t *testing.T) {
	const refusal = "NetworkPolicy reco exists, and Algorithm reco did not make it: rename one of the two, " +
		"or hand it over with the annotation capstan.dev/adopt=reco"
	for name, tc := range map[string]struct {
		reason  string
		found   composetest.Object
		refused bool
	}{
		"Nothing":    {"nothing is in the way", nil, false},
		"Foreign":    {"somebody else's is left alone", policyWith(map[string]any{}), true},
		"Owned":      {"what has a controller is Crossplane's to judge", policyWith(map[string]any{"ownerReferences": []any{map[string]any{"controller": true}}}), false},
		"NoControl":  {"an owner that does not control it is no controller", policyWith(map[string]any{"ownerReferences": []any{map[string]any{"kind": "X"}}}), true},
		"Restored":   {"the mark of the same Algorithm is its own", policyWith(map[string]any{"labels": map[string]any{"crossplane.io/composite": "reco"}}), false},
		"Other":      {"the mark of another is not", policyWith(map[string]any{"labels": map[string]any{"crossplane.io/composite": "else"}}), true},
		"HandedOver": {"the annotation is the consent", policyWith(map[string]any{"annotations": map[string]any{"capstan.dev/adopt": "reco"}}), false},
		"Copied":     {"consent to another object is none", policyWith(map[string]any{"annotations": map[string]any{"capstan.dev/adopt": "x"}}), true},
	} {
		t.Run(name, func(t *testing.T) {
			r := compose.Request{Now: now, Composite: algorithmWith(""), Required: map[string]compose.Object{}}
			if tc.found != nil {
				r.Required["existing.networkpolicy"] = tc.found
			}
			w := compose.Withhold(r)
			var want []v1alpha1.Withheld
			if tc.refused {
				want = []v1alpha1.Withheld{{Resource: "networkpolicy", Message: refusal, Until: metav1.NewTime(now.Add(time.Minute).Truncate(time.Second))}}
			}
			if diff := cmp.Diff(want, w.Entries([]compose.Asked{{Resource: "networkpolicy"}})); diff != "" {
				t.Errorf("%s: Entries: -want, +got:\n%s", tc.reason, diff)
			}
			if w.LeavesOut("networkpolicy") != tc.refused || w.LeavesOut("service") {
				t.Errorf("%s: it alone should be left out: %t, want %t; others: %t", tc.reason, w.LeavesOut("networkpolicy"), tc.refused, w.LeavesOut("service"))
			}
		})
	}
}

// TestTakeoverOfAComposite: an Algorithm under the name of a Preview has that name as its own mark, and is not the Preview's.
func TestTakeoverOfAComposite(t *testing.T) {
	r := compose.Request{
		Now:       now,
		Composite: composetest.Object{"kind": "Preview", "metadata": map[string]any{"name": "reco", "namespace": "shop"}},
		Required: map[string]compose.Object{"existing.algorithm": composetest.Object{
			"apiVersion": "capstan.dev/v1alpha1", "kind": "Algorithm",
			"metadata": map[string]any{"name": "reco", "labels": map[string]any{"crossplane.io/composite": "reco"}},
		}},
	}
	if !compose.Withhold(r).LeavesOut("algorithm") {
		t.Error("the Algorithm of another client should be left alone")
	}
}

func TestExisting(t *testing.T) {
	want := compose.Requirement{Kind: networkPolicy, Namespace: "shop", Name: "reco"}
	desired := map[string]compose.Reference{"networkpolicy": {Kind: networkPolicy, Name: "reco"}}
	for name, tc := range map[string]struct {
		reason   string
		xr       composetest.Object
		observed bool
		desired  map[string]compose.Reference
		found    bool
		want     map[string]compose.Requirement
	}{
		"New":      {"what is in its place is looked for", algorithmWith(""), false, desired, false, map[string]compose.Requirement{"existing.networkpolicy": want}},
		"Found":    {"it stays required after it was left out, or the pass would not end", algorithmWith(""), false, nil, true, map[string]compose.Requirement{"existing.networkpolicy": want}},
		"Observed": {"what is ours costs nothing", algorithmWith(""), true, desired, false, map[string]compose.Requirement{}},
		"Asked":    {"nor does what Crossplane refers to already", algorithmWith("reco"), false, desired, false, map[string]compose.Requirement{}},
		"Another":  {"a reference to another name is none", algorithmWith("old"), false, desired, false, map[string]compose.Requirement{"existing.networkpolicy": want}},
	} {
		t.Run(name, func(t *testing.T) {
			r := compose.Request{Composite: tc.xr, Observed: map[string]compose.Object{}, Required: map[string]compose.Object{"model": composetest.Object{}}}
			if tc.observed {
				r.Observed["networkpolicy"] = policyWith(map[string]any{})
			}
			if tc.found {
				r.Required["existing.networkpolicy"] = policyWith(map[string]any{})
			}
			if diff := cmp.Diff(tc.want, compose.Existing(r, tc.desired)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
