// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	xpextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
)

// written returns the schemas as they are written, without what Crossplane adds, by the path of their source.
func written(t *testing.T) map[string]extv1.JSONSchemaProps {
	t.Helper()
	schemas := map[string]extv1.JSONSchemaProps{}
	for path, crd := range definitions(t) {
		if filepath.Base(path) != "definition.yaml" {
			schemas[path] = *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			continue
		}
		xrd := &xpextv1.CompositeResourceDefinition{}
		readYAML(t, path, xrd)
		s := extv1.JSONSchemaProps{}
		if err := json.Unmarshal(xrd.Spec.Versions[0].Schema.OpenAPIV3Schema.Raw, &s); err != nil {
			t.Fatalf("cannot decode the schema of %q: %v", path, err)
		}
		schemas[path] = s
	}
	return schemas
}

// TestExplained shows that every field has a description, and every field that a person sets an example.
func TestExplained(t *testing.T) {
	for path, s := range written(t) {
		t.Run(path, func(t *testing.T) {
			for _, n := range nodes(t, "", s, nil) {
				if n.named && n.schema.Description == "" {
					t.Errorf("%s has no description", n.path)
				}
				if n.leaf() && !n.seen() && !ours(path) && len(n.examples) == 0 {
					t.Errorf("%s has no example", n.path)
				}
			}
		})
	}
}

// TestExamplesAreValid shows that what the API reference gives as an example is accepted.
func TestExamplesAreValid(t *testing.T) {
	for path, s := range written(t) {
		t.Run(path, func(t *testing.T) {
			for _, n := range nodes(t, "", s, nil) {
				if n.schema.Example == nil {
					continue
				}
				for _, err := range n.validate(t, decode(t, *n.schema.Example)) {
					t.Errorf("example of %s: %v", n.path, err)
				}
			}
		})
	}
}

// A node is one place in a schema.
type node struct {
	path   string
	schema extv1.JSONSchemaProps
	// named is true of fields, false of the items of lists and the values of maps.
	named bool
	// examples of its value: its own, and what those above it have at its place.
	examples []any
}

// leaf is true of what has nothing below it.
func (n node) leaf() bool {
	s := n.schema
	return len(s.Properties) == 0 && s.Items == nil && s.AdditionalProperties == nil && n.path != ".metadata"
}

// seen is true of what Kubernetes or a controller writes.
func (n node) seen() bool {
	return n.path == ".apiVersion" || n.path == ".kind" || strings.HasPrefix(n.path, ".status.")
}

// ours tells whether nobody but Capstan writes objects of a definition.
func ours(path string) bool { return strings.HasSuffix(path, "_providerconfigusages.yaml") }

// nodes returns a schema and everything below it.
func nodes(t *testing.T, path string, s extv1.JSONSchemaProps, inherited []any) []node {
	t.Helper()
	examples := inherited
	if s.Example != nil {
		examples = append([]any{decode(t, *s.Example)}, inherited...)
	}
	all := []node{{path: path, schema: s, examples: examples}}
	for name, below := range s.Properties {
		var values []any
		for _, e := range examples {
			if object, ok := e.(map[string]any); ok && object[name] != nil {
				values = append(values, object[name])
			}
		}
		found := nodes(t, path+"."+name, below, values)
		found[0].named = path+"."+name != ".metadata"
		all = append(all, found...)
	}
	if s.Items != nil {
		var values []any
		for _, e := range examples {
			list, _ := e.([]any)
			values = append(values, list...)
		}
		all = append(all, nodes(t, path+"[]", *s.Items.Schema, values)...)
	}
	if s.AdditionalProperties != nil {
		var values []any
		for _, e := range examples {
			object, _ := e.(map[string]any)
			for _, v := range object {
				values = append(values, v)
			}
		}
		all = append(all, nodes(t, path+"{}", *s.AdditionalProperties.Schema, values)...)
	}
	return all
}

// validate returns what the API server has to say against a value at this place.
func (n node) validate(t *testing.T, value any) []error {
	t.Helper()
	in := &apiextensions.JSONSchemaProps{}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&n.schema, in, nil); err != nil {
		t.Fatalf("cannot convert the schema of %s: %v", n.path, err)
	}
	s, err := structural.NewStructural(in)
	if err != nil {
		t.Fatalf("cannot read the schema of %s: %v", n.path, err)
	}
	v, _, err := validation.NewSchemaValidator(in)
	if err != nil {
		t.Fatalf("cannot make a validator of %s: %v", n.path, err)
	}
	var errs []error
	for _, err := range validation.ValidateCustomResource(nil, value, v) {
		errs = append(errs, err)
	}
	if rules := cel.NewValidator(s, false, celconfig.PerCallLimit); rules != nil {
		found, _ := rules.Validate(t.Context(), nil, s, value, nil, celconfig.RuntimeCELCostBudget)
		for _, err := range found {
			errs = append(errs, err)
		}
	}
	return errs
}

// decode JSON as the API server does, with whole numbers as int64.
func decode(t *testing.T, j extv1.JSON) any {
	t.Helper()
	in := apiextensions.JSON(nil)
	if err := extv1.Convert_v1_JSON_To_apiextensions_JSON(&j, &in, nil); err != nil {
		t.Fatalf("cannot decode %s: %v", j.Raw, err)
	}
	return in
}
