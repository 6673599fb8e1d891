// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func object(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	u, err := Parse("apiVersion: capstan.dev/v1alpha1\nkind: Database\nmetadata: {name: orders-db, namespace: shop}\nspec: " + spec)
	if err != nil {
		t.Fatal(err)
	}

	return u
}

func TestParse(t *testing.T) {
	for reason, tc := range map[string]struct{ text, err string }{
		"Nothing.":           {"", "has to be one object"},
		"A list.":            {"[1]", "has to be one object"},
		"No YAML.":           {"a: [", "cannot be read"},
		"A field twice.":     {"kind: A\nkind: B", "cannot be read"},
		"Two documents.":     {"kind: A\n---\nkind: B", "more than one object"},
		"No kind.":           {"a: b", "no object of Kubernetes"},
		"Too much.":          {strings.Repeat("a", Limit+1), "at most"},
		"Aliases that grow.": {bomb(), "cannot be read"},
	} {
		_, err := Parse(tc.text)
		if err == nil || !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s Want %q, got %v", reason, tc.err, err)
		}
	}
}

// bomb is a text that is ten to the ninth times as long once its aliases are resolved.
func bomb() string {
	var b strings.Builder
	b.WriteString("a: &a [x,x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c < 'k'; c++ {
		before := string(c - 1)
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+before+",", 10), ",") + "]\n")
	}

	return b.String()
}

func TestExpect(t *testing.T) {
	u := object(t, "{}")
	if err := Expect(u, "capstan.dev/v1alpha1", "Database", "shop", "orders-db"); err != nil {
		t.Error(err)
	}
	for field, args := range map[string][4]string{
		"apiVersion": {"v1", "Database", "shop", "orders-db"}, "kind": {"capstan.dev/v1alpha1", "Algorithm", "shop", "orders-db"},
		"metadata.namespace": {"capstan.dev/v1alpha1", "Database", "bank", "orders-db"}, "metadata.name": {"capstan.dev/v1alpha1", "Database", "shop", "other"},
	} {
		if err := Expect(u, args[0], args[1], args[2], args[3]); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
	u.SetName("")
	if err := Expect(u, "", "", "", ""); err == nil {
		t.Error("an object needs a name")
	}
}

func TestClean(t *testing.T) {
	u := object(t, "{replicas: 3, crossplane: {compositionRef: {name: database}}}")
	u.SetResourceVersion("7")
	u.SetUID("u")
	u.SetFinalizers([]string{"f"})
	u.SetAnnotations(map[string]string{"team": "shop", "kubectl.kubernetes.io/last-applied-configuration": "{}"})
	u.SetLabels(map[string]string{"crossplane.io/composite": "orders-db"})
	u.Object["status"] = map[string]any{"phase": "Running"}
	want := "apiVersion: capstan.dev/v1alpha1\nkind: Database\nmetadata:\n  annotations:\n    team: shop\n  name: orders-db\n  namespace: shop\nspec:\n  replicas: 3\n"
	if diff := cmp.Diff(want, Text(Clean(u))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, ok := u.Object["status"]; !ok {
		t.Error("the object itself was changed")
	}
}

func TestPatch(t *testing.T) {
	for reason, tc := range map[string]struct{ before, after, want string }{
		"Nothing.":              {"{a: 1}", "{a: 1}", `{"metadata":{"resourceVersion":"7"}}`},
		"A field.":              {"{a: 1, b: {c: 2, d: 3}}", "{a: 1, b: {c: 4, d: 3}}", `{"metadata":{"resourceVersion":"7"},"spec":{"b":{"c":4}}}`},
		"A field that goes.":    {"{a: 1, b: {c: 2}}", "{a: 1}", `{"metadata":{"resourceVersion":"7"},"spec":{"b":null}}`},
		"A list is one value.":  {"{a: [1, 2]}", "{a: [1]}", `{"metadata":{"resourceVersion":"7"},"spec":{"a":[1]}}`},
		"A block from nothing.": {"{}", "{b: {c: 2}}", `{"metadata":{"resourceVersion":"7"},"spec":{"b":{"c":2}}}`},
	} {
		got, err := Patch(object(t, tc.before), object(t, tc.after), "7")
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != tc.want {
			t.Errorf("%s Want %s, got %s", reason, tc.want, got)
		}
	}
}

func TestMerge(t *testing.T) {
	for reason, tc := range map[string]struct {
		base, mine, theirs, want string
		conflicts                []string
	}{
		"Different fields.":     {"{a: 1, b: 1}", "{a: 2, b: 1}", "{a: 1, b: 3}", "{a: 2, b: 3}", nil},
		"The same change.":      {"{a: 1}", "{a: 2}", "{a: 2}", "{a: 2}", nil},
		"The same field.":       {"{a: 1}", "{a: 2}", "{a: 3}", "{a: 2}", []string{"spec.a"}},
		"Gone and changed.":     {"{a: {b: 1}}", "{}", "{a: {b: 2}}", "{}", []string{"spec.a"}},
		"Below a block.":        {"{a: {b: 1, c: 1}}", "{a: {b: 2, c: 1}}", "{a: {b: 3, c: 4}}", "{a: {b: 2, c: 4}}", []string{"spec.a.b"}},
		"A block that is gone.": {"{a: {b: 1, c: 1}}", "{a: {c: 1}}", "{}", "{}", []string{"spec.a"}},
	} {
		base, mine, theirs := object(t, tc.base), object(t, tc.mine), object(t, tc.theirs)
		before := Text(theirs)
		merged, conflicts := Merge(base, mine, theirs)
		if diff := cmp.Diff(Text(object(t, tc.want)), Text(merged)); diff != "" {
			t.Errorf("%s -want, +got:\n%s", reason, diff)
		}
		if diff := cmp.Diff(tc.conflicts, conflicts); diff != "" {
			t.Errorf("%s conflicts: -want, +got:\n%s", reason, diff)
		}
		if Text(theirs) != before {
			t.Errorf("%s what they wrote was changed", reason)
		}
	}
}

func TestDiff(t *testing.T) {
	want := []Line{{"@", "@ -1,2 +1,2 @@"}, {"", "a"}, {"-", "b"}, {"+", "c"}}
	if diff := cmp.Diff(want, Diff("a\nb\n", "a\nc\n")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := Diff("a\n", "a\n"); len(got) != 0 {
		t.Errorf("nothing differs: %v", got)
	}
}
