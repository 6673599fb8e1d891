// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"

	"github.com/capstan-dev/capstan/apis"
	"github.com/capstan-dev/capstan/plugin/internal/cluster"
	"github.com/capstan-dev/capstan/test/outside"
)

// TestActsAreAccepted runs each act on a real API server with the schemas of the packages. It takes every patch, and changes nothing
// beside the fields of the act.
func TestActsAreAccepted(t *testing.T) {
	config := outside.APIServer(t)
	install(t, config, apis.Algorithm, apis.Database)
	c, err := cluster.New(config, "demo")
	if err != nil {
		t.Fatal(err)
	}
	r := rig{plugin: &plugin{connect: func() (*cluster.Cluster, error) { return c, nil }, now: func() time.Time { return moment }}}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "demo"}}}
	if _, err := c.Dynamic.Resource(cluster.Pods.GroupVersion().WithResource("namespaces")).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range everyAct {
		t.Run(name, func(t *testing.T) {
			given := object(t, tc.object, tc.edit)
			given.SetResourceVersion("")
			given.SetName("of-" + name)
			resource := cluster.Algorithms
			if given.GetKind() == "Database" {
				resource = cluster.Databases
			}
			objects := c.Dynamic.Resource(resource).Namespace("demo")
			before, err := objects.Create(t.Context(), given, metav1.CreateOptions{FieldManager: "team"})
			if err != nil {
				t.Fatal(err)
			}
			before.Object["status"] = given.Object["status"]
			if before, err = objects.UpdateStatus(t.Context(), before, metav1.UpdateOptions{FieldManager: "crossplane"}); err != nil {
				t.Fatal(err)
			}

			out, err := r.run(t.Context(), "", append([]string{name, given.GetName(), "--yes"}, tc.args...)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			after, err := objects.Get(t.Context(), given.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.paths, spec(before, after)); diff != "" {
				t.Errorf("changed fields: -want, +got:\n%s", diff)
			}
			mine := slices.ContainsFunc(after.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return m.Manager == cluster.FieldManager })
			// What only removes fields owns none.
			if !slices.Contains([]string{"resume", "unfence"}, name) && !mine {
				t.Errorf("the edit has no manager %s: %v", cluster.FieldManager, after.GetManagedFields())
			}
		})
	}
}

// spec has the paths of the spec that differ.
func spec(before, after *unstructured.Unstructured) []string {
	return slices.DeleteFunc(changed(before.Object, after.Object), func(path string) bool { return strings.HasPrefix(path, "metadata.") })
}

// install the kinds that Crossplane makes of definitions.
func install(t *testing.T, config *rest.Config, definitions ...[]byte) {
	t.Helper()
	var crds []*extv1.CustomResourceDefinition
	for _, text := range definitions {
		xrd := &xpextv1.CompositeResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, xrd); err != nil {
			t.Fatal(err)
		}
		crd, err := xcrd.ForCompositeResource(xrd)
		if err != nil {
			t.Fatal(err)
		}
		// The owner is the definition, which has no UID here.
		crd.OwnerReferences = nil
		crds = append(crds, crd)
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: crds}); err != nil {
		t.Fatal(err)
	}
}
