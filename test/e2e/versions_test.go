// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// The versions that every kind of Capstan is served in.
const (
	stored = "v1alpha1"
	beside = "v1beta1"
)

// TestVersions writes objects in one version and reads them in the other, changes fields from both, and runs the command of
// docs/versions.md that rewrites stored objects.
func TestVersions(t *testing.T) {
	ns := namespace(t)
	reco := algorithm(ns, "reco")
	orders := database(ns, "orders", func(d *v1alpha1.Database) { d.Spec.Replicas = 1 })
	t.Cleanup(func() { deleteDatabase(t, orders) })
	// In this order: the Database needs no more than to be accepted, and the Algorithm's pod starts meanwhile.
	for _, o := range []client.Object{reco, orders, credential(ns, "plain")} {
		if err := as(t.Context(), "team", versionOf(t, o, beside)); err != nil {
			t.Fatalf("cannot apply %s as %s: %v", o.GetName(), beside, err)
		}
	}
	eventually(t, "the Algorithm is Ready", ready(ns, "reco", v1alpha1.PhaseReady, 1))
	eventually(t, "the Database is accepted", databaseCondition(orders, v1alpha1.TypeAccepted, corev1.ConditionTrue, v1alpha1.ReasonValid))
	eventually(t, "the Credential is Ready", available(ns, "plain"))
	before := pods(t.Context(), t, ns, "reco")

	t.Run("Fields", func(t *testing.T) {
		sharesFields(t, reco, int64(5), int64(7), "spec", "revisionHistoryLimit")
		sharesFields(t, orders, "8MB", "16MB", "spec", "config", "work_mem")
		sharesFields(t, credential(ns, "plain"), "five", "seven", "metadata", "annotations", "example.org/note")
	})
	t.Run("Kinds", func(t *testing.T) {
		for _, crd := range kindsOfCapstan(t) {
			if served, in := versionsOf(t, crd); !slices.Equal(served, []string{stored, beside}) || !slices.Equal(in, []string{stored}) {
				t.Errorf("%s is served in %v and stored in %v", crd.GetName(), served, in)
			}
		}
		// Another test takes a kind from the cluster, about which discovery complains for a moment.
		eventually(t, "kubectl lists each object once", func(ctx context.Context) error {
			out, err := exec.CommandContext(ctx, "kubectl", "get", "capstan", "--namespace", ns, "--output=name").CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			names := strings.Fields(string(out))
			if unique := slices.Compact(slices.Sorted(slices.Values(names))); len(unique) != len(names) || len(names) < 3 {
				return fmt.Errorf("it lists %v", names)
			}

			return nil
		})
	})
	t.Run("Rewrite", func(t *testing.T) { rewrites(t, ns) })

	if after := pods(t.Context(), t, ns, "reco"); !equal(before, after) {
		t.Errorf("pods before %v, after %v", before, after)
	}
	eventually(t, "still Ready", ready(ns, "reco", v1alpha1.PhaseReady, 1))
}

// versionOf an object, as clients of that version write it.
func versionOf(t *testing.T, o client.Object, version string) *unstructured.Unstructured {
	t.Helper()
	gvk, err := kube.GroupVersionKindFor(o)
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	gvk.Version = version
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")

	return u
}

// as applies an object as a manager of fields, and takes none from another one.
func as(ctx context.Context, manager client.FieldOwner, u *unstructured.Unstructured) error {
	return kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), manager)
}

// sharesFields shows that managers of fields are the same ones in both versions: who sets a field in one version removes it in the
// other, and two managers conflict across versions.
func sharesFields(t *testing.T, o client.Object, first, second any, path ...string) {
	t.Helper()
	set := func(version string, value any) *unstructured.Unstructured {
		u := versionOf(t, o, version)
		if value != nil {
			if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
				t.Fatal(err)
			}
		}

		return u
	}
	must := func(manager client.FieldOwner, u *unstructured.Unstructured) {
		t.Helper()
		if err := as(t.Context(), manager, u); err != nil {
			t.Fatalf("%s cannot apply %s: %v", manager, u.GetName(), err)
		}
	}
	// both reads the field in both versions, which differ in nothing but their names.
	both := func() any {
		t.Helper()
		read := func(version string) *unstructured.Unstructured {
			u := versionOf(t, o, version)
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(o), u); err != nil {
				t.Fatal(err)
			}

			return u
		}
		var a, b *unstructured.Unstructured
		eventually(t, "nobody writes between two reads", func(context.Context) error {
			if a, b = read(stored), read(beside); a.GetResourceVersion() != b.GetResourceVersion() {
				return errors.New("somebody did")
			}

			return nil
		})
		b.SetAPIVersion(a.GetAPIVersion())
		if diff := cmp.Diff(a.Object, b.Object); diff != "" {
			t.Errorf("-%s, +%s:\n%s", stored, beside, diff)
		}
		n := 0
		for _, f := range a.GetManagedFields() {
			if f.Manager == "team" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("the manager that applies in both versions has %d sets of fields, want one", n)
		}
		value, _, err := unstructured.NestedFieldCopy(a.Object, path...)
		if err != nil {
			t.Fatal(err)
		}

		return value
	}

	unset := both()
	must("team", set(beside, first))
	if got := both(); got != first {
		t.Errorf("%s sets %v in %s, got %v", path, first, beside, got)
	}
	must("team", set(stored, nil))
	if got := both(); got != unset {
		t.Errorf("the manager of %s removes it in %s, got %v", path, stored, got)
	}
	must("ops", set(stored, second))
	if err := as(t.Context(), "team", set(beside, first)); !kerrors.IsConflict(err) || !strings.Contains(err.Error(), "ops") {
		t.Errorf("another manager in the other version conflicts, got %v", err)
	}
	if got := both(); got != second {
		t.Errorf("%s of the other manager is %v, got %v", path, second, got)
	}
	// From now on only the first manager has fields.
	none := versionOf(t, o, beside)
	unstructured.RemoveNestedField(none.Object, "spec")
	must("ops", none)
	if got := both(); got != unset {
		t.Errorf("%s goes with its manager, got %v", path, got)
	}
}

// rewrites runs the commands of docs/versions.md. A kind of its own shows that they do what they say: its version of storage changes, and
// its objects are readable when the old version is gone.
func rewrites(t *testing.T, ns string) {
	t.Helper()
	const group = "versions.capstan.dev"
	crd := definitionOf("things." + group)
	if err := kube.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		released := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, observev1alpha1.AnnotationRelease, crd.GetName())
		if err := errors.Join(kube.Patch(ctx, crd, client.RawPatch(types.MergePatchType, released)), kube.Delete(ctx, crd)); err != nil {
			t.Error(err)
		}
	})
	thing := func(name, version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(3)}}}
		u.SetAPIVersion(group + "/" + version)
		u.SetKind("Thing")
		u.SetNamespace(ns)
		u.SetName(name)

		return u
	}
	for _, name := range []string{"kept", "probe"} {
		eventually(t, name+" is created", func(ctx context.Context) error { return kube.Create(ctx, thing(name, stored)) })
	}
	edit := func(patch string) error {
		return kube.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(patch)))
	}
	if err := edit(`[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`); err != nil {
		t.Fatal(err)
	}
	probe := thing("probe", stored)
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(probe), probe); err != nil {
		t.Fatal(err)
	}
	was := probe.GetResourceVersion()
	eventually(t, "the API server stores the other version", func(ctx context.Context) error {
		if err := kube.Patch(ctx, probe, client.RawPatch(types.MergePatchType, []byte("{}"))); err != nil || probe.GetResourceVersion() != was {
			return err
		}

		return errors.New("an empty patch writes nothing")
	})
	gone := `[{"op":"remove","path":"/spec/versions/0"}]`
	if err := edit(gone); !kerrors.IsInvalid(err) {
		t.Fatalf("a version in which objects are stored cannot go, got %v", err)
	}

	for _, block := range commands(t, "versions.md", "Stored objects") {
		// Objects of other tests can go between two commands.
		eventually(t, "the commands of the page succeed", func(context.Context) error {
			_, err := try(t, t.TempDir(), block)

			return err
		})
	}
	for _, k := range kindsOfCapstan(t) {
		want := []string{stored}
		if k.GetName() == crd.GetName() {
			want = []string{beside}
		}
		if _, in := versionsOf(t, k); !slices.Equal(in, want) {
			t.Errorf("%s is stored in %v, want %v", k.GetName(), in, want)
		}
	}
	if err := edit(gone); err != nil {
		t.Fatalf("the old version can go now: %v", err)
	}
	eventually(t, "what was stored in the old version is readable", func(ctx context.Context) error {
		old := thing("kept", stored)
		if err := kube.Get(ctx, client.ObjectKeyFromObject(old), old); err == nil {
			return errors.New("the old version is still served")
		}
		kept := thing("kept", beside)
		if err := kube.Get(ctx, client.ObjectKeyFromObject(kept), kept); err != nil {
			return err
		}
		if size, _, _ := unstructured.NestedInt64(kept.Object, "spec", "size"); size != 3 {
			return fmt.Errorf("its size is %d, want 3", size)
		}

		return nil
	})
}

// definitionOf a kind that is served in both versions like Capstan's.
func definitionOf(name string) *unstructured.Unstructured {
	plural, group, _ := strings.Cut(name, ".")
	version := func(name string, storage bool) any {
		return map[string]any{
			"name": name, "served": true, "storage": storage,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "scope": "Namespaced",
		"names":    map[string]any{"kind": "Thing", "plural": plural},
		"versions": []any{version(stored, true), version(beside, false)},
	}}}
	u.SetAPIVersion("apiextensions.k8s.io/v1")
	u.SetKind("CustomResourceDefinition")
	u.SetName(name)

	return u
}

// kindsOfCapstan are the definitions of all kinds of its groups.
func kindsOfCapstan(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiextensions.k8s.io/v1")
	list.SetKind("CustomResourceDefinitionList")
	if err := kube.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}

	return slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool { return !strings.HasSuffix(u.GetName(), ".capstan.dev") })
}

// versionsOf a kind: what is served, and in what its objects are stored.
func versionsOf(t *testing.T, crd unstructured.Unstructured) (served, in []string) {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		if name, _, _ := unstructured.NestedString(v.(map[string]any), "name"); v.(map[string]any)["served"] == true {
			served = append(served, name)
		}
	}
	in, _, err = unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	if err != nil {
		t.Fatal(err)
	}

	return served, in
}
