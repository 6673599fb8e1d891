// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-dev/capstan/apis/optional"
)

const route = "gateway.networking.k8s.io/v1/HTTPRoute"

// crd of HTTPRoutes that is served, with modifiers.
func crd(mods ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	c := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "httproutes.gateway.networking.k8s.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "gateway.networking.k8s.io", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "HTTPRoute"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true}, {Name: "v1", Served: true}},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}},
	}
	for _, mod := range mods {
		mod(c)
	}
	return c
}

// config with data, as package/platform.yaml creates it without any.
func config(data map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": optional.Config}}}
	u.SetAPIVersion("apiextensions.crossplane.io/v1beta1")
	u.SetKind("EnvironmentConfig")
	if data != nil {
		u.Object["data"] = data
	}
	return u
}

func TestReconcile(t *testing.T) {
	type mod = func(*apiextensionsv1.CustomResourceDefinition)
	cases := map[string]struct {
		reason  string
		crds    []mod
		config  *unstructured.Unstructured
		want    any
		written bool
	}{
		"Served":     {"A kind that a CRD serves is available.", []mod{func(*apiextensionsv1.CustomResourceDefinition) {}}, config(nil), true, true},
		"Missing":    {"A kind without a CRD is not.", nil, config(nil), false, true},
		"NotYet":     {"A CRD that is not established serves nothing.", []mod{func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions = nil }}, config(nil), false, true},
		"Going":      {"A CRD that is deleted ends.", []mod{deleted}, config(nil), false, true},
		"OtherGroup": {"Another kind of the same name is not it.", []mod{func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Group = "example.org" }}, config(nil), false, true},
		"OldVersion": {"A version that is no longer served does not count.", []mod{func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[1].Served = false }}, config(nil), false, true},
		"Edited":     {"An edit is undone.", nil, config(map[string]any{"kinds": map[string]any{route: true}}), false, true},
		"Wrong":      {"What cannot be read is replaced.", nil, config(map[string]any{"kinds": map[string]any{route: "yes"}}), false, true},
		"Unchanged":  {"Nothing is written that is there already.", nil, config(map[string]any{"kinds": served(nil)}), false, false},
		"NoPlatform": {"Without the EnvironmentConfig the function asks for schemas.", nil, nil, nil, false},
		"OthersKept": {"Other data is not the provider's.", nil, config(map[string]any{"note": "ours"}), false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := apiextensionsv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			b := fake.NewClientBuilder().WithScheme(scheme)
			for _, mod := range tc.crds {
				b.WithObjects(crd(mod))
			}
			if tc.config != nil {
				b.WithObjects(tc.config)
			}
			kube := b.Build()
			again := ctrl.Result{RequeueAfter: time.Minute}
			got, err := (&reconciler{kube: kube, direct: kube, mapper: meta.NewDefaultRESTMapper(nil), again: again}).Reconcile(t.Context(), ctrl.Request{})
			if err != nil || got != again {
				t.Fatalf("%s\nReconcile(...): %v, %v", tc.reason, got, err)
			}
			now := config(nil)
			if err := kube.Get(t.Context(), client.ObjectKey{Name: optional.Config}, now); tc.config == nil {
				if err == nil {
					t.Fatalf("%s\nthere is one", tc.reason)
				}
				return
			}
			kinds, _, _ := unstructured.NestedMap(now.Object, "data", "kinds")
			if diff := cmp.Diff(tc.want, kinds[route]); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if written := now.GetResourceVersion() != tc.config.GetResourceVersion() && now.GetResourceVersion() != "999"; written != tc.written {
				t.Errorf("%s\nwritten: %t, want %t", tc.reason, written, tc.written)
			}
			note, _, _ := unstructured.NestedString(tc.config.Object, "data", "note")
			if is, _, _ := unstructured.NestedString(now.Object, "data", "note"); is != note {
				t.Errorf("%s\ndata.note: %q, want %q", tc.reason, is, note)
			}
		})
	}
}

// deleted CRD, whose objects are still to be removed.
func deleted(c *apiextensionsv1.CustomResourceDefinition) {
	now := metav1.Now()
	c.DeletionTimestamp, c.Finalizers = &now, []string{"customresourcecleanup.apiextensions.k8s.io"}
}

// TestBuiltIn reports a kind that is part of Kubernetes, and has no CRD.
func TestBuiltIn(t *testing.T) {
	claims := schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaimTemplate"}
	cases := map[string]struct {
		reason string
		serves []schema.GroupVersionKind
		want   bool
	}{
		"Served":  {"Kubernetes 1.34 serves it.", []schema.GroupVersionKind{claims}, true},
		"Missing": {"Older versions do not.", nil, false},
		"OldVersion": {
			"A version that is not the one composed does not count.",
			[]schema.GroupVersionKind{claims.GroupKind().WithVersion("v1beta1")},
			false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mapper := meta.NewDefaultRESTMapper(nil)
			for _, gvk := range tc.serves {
				mapper.Add(gvk, meta.RESTScopeNamespace)
			}
			got, err := (&reconciler{mapper: mapper}).built(claims)
			if err != nil || got != tc.want {
				t.Errorf("%s\nbuilt(...): got %t, %v, want %t", tc.reason, got, err, tc.want)
			}
		})
	}
}
