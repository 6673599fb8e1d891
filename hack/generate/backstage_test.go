// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// A form with a field of each kind of path.
const thingForm = `{
	"required": ["a"],
	"dependentRequired": {"block.deep": ["block.first"]},
	"ui:order": ["a", "block.first", "b", "block.deep", "more.below.last"],
	"properties": {
		"a":               {"type": "string", "title": "The a", "x-ui-group": "basic", "x-ui-order": 1},
		"b":               {"type": "array", "items": {"type": "string"}, "x-ui-group": "basic"},
		"block.first":     {"type": "string", "x-ui-group": "basic"},
		"block.deep":      {"type": "integer", "x-ui-group": "basic", "x-ui-placeholder": "3"},
		"more.below.last": {"type": "boolean", "x-ui-group": "advanced"}
	}
}`

const thingManifest = `apiVersion: capstan.dev/v1beta1
kind: Thing
metadata:
  name: ${{ values["name"] | dump }}
  namespace: ${{ values["namespace"] | dump }}
spec:
  a: ${{ values["a"] | dump }}
  {% if values["block.first"] | length or values["block.deep"] is defined %}
  block:
    {% if values["block.first"] | length %}
    first: ${{ values["block.first"] | dump }}
    {% endif %}
    {% if values["block.deep"] is defined %}
    deep: ${{ values["block.deep"] | dump }}
    {% endif %}
  {% endif %}
  {% if values["b"] | length %}
  b: ${{ values["b"] | dump }}
  {% endif %}
  {% if values["more.below.last"] is defined %}
  more:
    below:
      last: ${{ values["more.below.last"] | dump }}
  {% endif %}
`

// TestBackstage makes a manifest that has each block once, and only if one of its fields is filled, and a form without hints for others.
func TestBackstage(t *testing.T) {
	files, c := tree{}, formKind(t)
	c.Spec.Versions[0].Schema.OpenAPIV3Schema["x-kubernetes-validations"] = []any{
		map[string]any{"rule": "self.spec.a != 'x'", "message": "must not be x"},
		map[string]any{"rule": "self.metadata.name.matches('^[a-z]{3}$')", "message": "must be three letters"},
	}
	if err := portals(files, c, []byte(thingForm)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(thingManifest, string(files["integrations/backstage/thing/manifest.njk"])); diff != "" {
		t.Errorf("the manifest: -want, +got:\n%s", diff)
	}
	var got struct {
		Spec struct {
			Parameters []map[string]any `json:"parameters"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(files["integrations/backstage/thing/template.yaml"], &got); err != nil {
		t.Fatal(err)
	}
	text := map[string]any{"type": "string"}
	want := []map[string]any{
		{
			"title": "Where", "required": []any{"name", "namespace"}, "ui:order": []any{"name", "namespace"},
			"properties": map[string]any{
				"name": map[string]any{"title": "Name", "type": "string", "maxLength": 63.0, "pattern": "^[a-z]{3}$", "description": "must be three letters"},
				"namespace": map[string]any{
					"title": "Namespace", "type": "string", "maxLength": 63.0, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "description": "Namespace of the cluster, which has to exist.",
				},
			},
		},
		{
			"title": "Thing", "required": []any{"a"}, "ui:order": []any{"a", "block.first", "b", "block.deep"},
			"dependencies": map[string]any{"block.deep": []any{"block.first"}},
			"properties": map[string]any{
				"a": map[string]any{"type": "string", "title": "The a"}, "b": map[string]any{"type": "array", "items": text},
				"block.first": text, "block.deep": map[string]any{"type": "integer", "ui:placeholder": "default: 3"},
			},
		},
		{"title": "More", "ui:order": []any{"more.below.last"}, "properties": map[string]any{"more.below.last": map[string]any{"type": "boolean", "ui:widget": "radio"}}},
	}
	if diff := cmp.Diff(want, got.Spec.Parameters); diff != "" {
		t.Errorf("the pages of the form: -want, +got:\n%s", diff)
	}

	err := portals(files, c, []byte(`{"properties": {"name": {}}}`))
	if err == nil || !strings.Contains(err.Error(), "its form has a field name, which is where the object is") {
		t.Errorf("two fields with one name: %v", err)
	}
}
