// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/apis"
)

// A formSchema is what portals make forms from.
type formSchema struct {
	Type       string                `json:"type"`
	Default    any                   `json:"default"`
	Hidden     bool                  `json:"x-ui-hidden"`
	Properties map[string]formSchema `json:"properties"`
	Items      *formSchema           `json:"items"`
	Required   []string              `json:"required"`
	Order      []string              `json:"ui:order"`
	Together   map[string][]string   `json:"dependencies"`
}

// filled is what a form gives that writes every default into the object, as generic forms do. Portals that read definitions show defaults of
// texts and numbers as placeholders, and write only those that are Booleans: for them, booleans is true.
func (s formSchema) filled(typed map[string]any, booleans bool) map[string]any {
	out := maps.Clone(typed)
	for name, p := range s.Properties {
		if _, ok := out[name]; ok || p.Hidden {
			continue
		}
		if _, boolean := p.Default.(bool); p.Default != nil && (boolean || !booleans) {
			out[name] = p.Default
		}
		// A block that nobody typed in is there once one of its fields has a value.
		if below := p.filled(map[string]any{}, booleans); len(below) > 0 {
			out[name] = below
		}
	}

	return out
}

// curated forms with the least that a person has to type.
var curated = map[string]struct {
	form, definition []byte
	typed            map[string]any
}{
	"Algorithm": {apis.AlgorithmForm, apis.Algorithm, map[string]any{"image": "registry.example.org/algo/reco:2.1.4"}},
	"Database":  {apis.DatabaseForm, apis.Database, map[string]any{"engine": "postgres", "version": "17", "replicas": int64(3), "storage": "50Gi"}},
	"Pipeline":  {apis.PipelineForm, apis.Pipeline, map[string]any{"image": "registry.example.org/features:1.4.0", "args": []any{"features"}}},
	"Training":  {apis.TrainingForm, apis.Training, map[string]any{"image": "registry.example.org/fraud-train:2.0.0", "args": []any{"train"}}},
}

// TestDefaultsOfFormsSwitchNothingOn fills forms with defaults only. A curated form gives the object with the typed fields. A form made of the
// whole definition adds no block: the presence of a block is the switch of a feature.
func TestDefaultsOfFormsSwitchNothingOn(t *testing.T) {
	for kind, tc := range curated {
		t.Run(kind, func(t *testing.T) {
			var form formSchema
			if err := json.Unmarshal(tc.form, &form); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.typed, form.filled(tc.typed, false)); diff != "" {
				t.Errorf("the curated form: -typed, +filled with defaults:\n%s", diff)
			}
			for _, name := range form.Required {
				if _, ok := tc.typed[name]; !ok {
					t.Errorf("the curated form requires %s, which the schema does not", name)
				}
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(form.Properties)), slices.Sorted(slices.Values(form.Order))); diff != "" {
				t.Errorf("the order of the fields: -fields, +ordered:\n%s", diff)
			}

			filled := specForm(t, tc.definition).filled(tc.typed, true)
			for name, v := range filled {
				if _, block := v.(map[string]any); block {
					t.Errorf("a form made of the definition switches %s on: %v", name, v)
				}
			}
		})
	}
}

// TestActsAreNoFormFields expects that no form asks for what is a request of day two.
func TestActsAreNoFormFields(t *testing.T) {
	for kind, want := range map[string][]string{
		"Algorithm": {"experiment", "rollout"},
		"Database":  {"cutOver", "hibernated", "promote", "reinitialize", "restore", "switchover", "upgrade"},
		"Training":  {"rerun", "suspend"},
	} {
		spec := specForm(t, curated[kind].definition)
		for _, name := range want {
			if !spec.Properties[name].Hidden {
				t.Errorf("%s: a form made of the definition asks for %s", kind, name)
			}
			for field := range formOf(t, kind).Properties {
				if field == name || strings.HasPrefix(field, name+".") {
					t.Errorf("%s: the curated form asks for %s", kind, field)
				}
			}
		}
	}
}

func formOf(t *testing.T, kind string) formSchema {
	t.Helper()
	var form formSchema
	if err := json.Unmarshal(curated[kind].form, &form); err != nil {
		t.Fatal(err)
	}

	return form
}

// specForm is the spec in a definition, in the version that is stored.
func specForm(t *testing.T, definition []byte) formSchema {
	t.Helper()
	var d struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema formSchema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(definition, &d); err != nil {
		t.Fatal(err)
	}

	return d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}
