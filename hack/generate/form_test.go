// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/hack/internal/testfile"
)

// formTypes has one more field in the form for each letter.
func formTypes(letters string, more ...string) string {
	var fields strings.Builder
	for i, l := range letters {
		fmt.Fprintf(&fields, "\t// %[1]c of it.\n\t//\n\t// +capstan:form:title=\"The %[1]c\",order=%[2]d,group=basic\n\t%[3]c string `json:\"%[1]c\"`\n", l, i+1, l-'a'+'A')
	}
	return "package v1alpha1\n\ntype ThingSpec struct {\n" + fields.String() + strings.Join(more, "\n") + "\n}\n\n" +
		"type Block struct {\n\t// +capstan:form:title=\"Deep\",order=20,group=advanced\n\tDeep *int `json:\"deep,omitempty\"`\n}\n"
}

const block = "\tBlock *Block `json:\"block,omitempty\"`"

// formKind has the schema of these types.
func formKind(t *testing.T) crd {
	t.Helper()
	c := crd{raw: []byte(thingCRD), top: apis}
	if err := yaml.Unmarshal(c.raw, &c); err != nil {
		t.Fatal(err)
	}
	properties := map[string]any{
		"block": map[string]any{"type": "object", "properties": map[string]any{"deep": map[string]any{"type": "integer", "default": 3, "minimum": 1}}},
		"now":   map[string]any{"type": "string"},
		"list":  map[string]any{"type": "array", "items": map[string]any{"type": "object"}},
	}
	for _, l := range "abcdefghijklmn" {
		properties[string(l)] = map[string]any{"type": "string", "example": "x"}
	}
	spec := map[string]any{"type": "object", "required": []any{"a"}, "properties": properties}
	child(c.Spec.Versions[0].Schema.OpenAPIV3Schema, "properties")["spec"] = spec
	return c
}

func TestForm(t *testing.T) {
	cases := map[string]struct {
		reason string
		types  string
		want   string
		err    string
	}{
		"Good":      {reason: "Fields by their paths, in their order.", types: formTypes("abcdefgh", block), want: "a b c d e f g h block.deep"},
		"TooFew":    {reason: "A form that makes nothing useful.", types: formTypes("abc"), err: "it has 3 fields, a first screen has 8 to 12"},
		"TooMany":   {reason: "A form that is no first screen.", types: formTypes("abcdefghijklm"), err: "it has 13 fields"},
		"Required":  {reason: "A form whose object is refused.", types: formTypes("bcdefghi"), err: "it lacks the required field a"},
		"Type":      {reason: "What no input shows.", types: formTypes("abcdefgh", "\t// +capstan:form:title=\"L\",order=9,group=basic\n\tList []Block `json:\"list\"`"), err: `list has the type "array"`},
		"Unknown":   {reason: "A field that the schema lacks.", types: formTypes("abcdefgh", "\t// +capstan:form:hidden\n\tZ string `json:\"z\"`"), err: "cannot show z in a form"},
		"NoTitle":   {reason: "People read titles.", types: formTypes("abcdefgh", "\t// +capstan:form:order=9\n\tNow string `json:\"now\"`"), err: "it has no title"},
		"NoOrder":   {reason: "Where is it?", types: formTypes("abcdefgh", "\t// +capstan:form:title=\"N\",group=basic\n\tNow string `json:\"now\"`"), err: "it has no order"},
		"Group":     {reason: "A misspelt group.", types: formTypes("abcdefgh", "\t// +capstan:form:title=\"N\",order=9,group=basics\n\tNow string `json:\"now\"`"), err: `group "basics" is none of`},
		"Misspelt":  {reason: "A misspelt argument.", types: formTypes("abcdefgh", "\t// +capstan:form:titel=\"N\"\n\tNow string `json:\"now\"`"), err: "is neither hidden nor made of"},
		"Two":       {reason: "Which of them?", types: formTypes("abcdefgh", "\t// +capstan:form:hidden\n\t// +capstan:form:hidden\n\tNow string `json:\"now\"`"), err: "there are two"},
		"NoMarkers": {reason: "A kind without a form.", types: "package v1alpha1\n\ntype ThingSpec struct{}\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			testfile.Write(t, root, filepath.Join("apis", "v1alpha1", "thing_types.go"), tc.types)
			files := tree{}
			err := forms(files, root, formKind(t))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s Want %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Order []string `json:"ui:order"`
			}
			if data, ok := files["apis/thing/form.json"]; ok {
				if err := json.Unmarshal(data, &got); err != nil {
					t.Fatal(err)
				}
			}
			if order := strings.Join(got.Order, " "); order != tc.want {
				t.Errorf("%s Want %q, got %q", tc.reason, tc.want, order)
			}
		})
	}
}

// TestNeeded leaves out a field whose block is refused without another, or asks for both where the form has both.
func TestNeeded(t *testing.T) {
	for _, tc := range []struct {
		reason, required string
		dependent        map[string][]string
		there            bool
	}{
		{"The other field needs this one.", "deep", map[string][]string{"block.near": {"block.deep"}}, true},
		{"The form has what is needed.", "near", map[string][]string{"block.deep": {"block.near"}}, true},
		{"The form cannot give what is needed.", "far", nil, false},
	} {
		t.Run(tc.required, func(t *testing.T) {
			root := t.TempDir()
			testfile.Write(t, root, filepath.Join("apis", "v1alpha1", "thing_types.go"), strings.Replace(formTypes("abcdefgh", block), "type Block struct {",
				"type Block struct {\n\t// +capstan:form:title=\"Near\",order=21,group=basic\n\tNear string `json:\"near\"`", 1))
			c, files := formKind(t), tree{}
			in := schemaAt(c.Spec.Versions[0].Schema.OpenAPIV3Schema, "block")
			in["required"], child(in, "properties")["near"] = []any{tc.required}, map[string]any{"type": "string"}
			if err := forms(files, root, c); err != nil {
				t.Fatal(err)
			}
			var form struct {
				Properties map[string]any      `json:"properties"`
				Dependent  map[string][]string `json:"dependentRequired"`
			}
			if err := json.Unmarshal(files["apis/thing/form.json"], &form); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.dependent, form.Dependent); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if _, there := form.Properties["block.deep"]; there != tc.there {
				t.Errorf("%s The field is in the form: %v", tc.reason, there)
			}
		})
	}
}

// TestHints are in the definition under the names that portals read, and what a form shows of a default is no default.
func TestHints(t *testing.T) {
	root := t.TempDir()
	testfile.Write(t, root, filepath.Join("apis", "v1alpha1", "thing_types.go"),
		formTypes("abcdefgh", block, "\t// +capstan:form:title=\"Now\",group=acts\n\tNow string `json:\"now\"`"))
	c, files := formKind(t), tree{}
	if err := forms(files, root, c); err != nil {
		t.Fatal(err)
	}
	kind := c.Spec.Versions[0].Schema.OpenAPIV3Schema
	for at, want := range map[string]map[string]any{
		"a":          {"type": "string", "example": "x", "title": "The a", "x-ui-order": 1},
		"block.deep": {"type": "integer", "default": 3.0, "minimum": 1.0, "title": "Deep", "x-ui-order": 20, "x-ui-advanced": true},
		"now":        {"type": "string", "title": "Now", "x-ui-hidden": true},
	} {
		got := schemaAt(kind, at)
		if d, ok := got["default"].(int); ok {
			got["default"], got["minimum"] = float64(d), 1.0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", at, diff)
		}
	}
	var form struct {
		Properties map[string]map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(files["apis/thing/form.json"], &form); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"type": "integer", "minimum": 1.0, "title": "Deep", "x-ui-order": 20.0, "x-ui-group": "advanced", "x-ui-placeholder": "3"}
	if diff := cmp.Diff(want, form.Properties["block.deep"]); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, ok := form.Properties["now"]; ok {
		t.Error("an act is no field of a form")
	}
}
