// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPortActions reads the actions for Port. Their inputs are the fields of the curated form, with a low line for each dot.
func TestPortActions(t *testing.T) {
	for kind := range curated {
		t.Run(kind, func(t *testing.T) {
			var action struct {
				Trigger struct {
					Inputs struct {
						Properties map[string]formSchema `json:"properties"`
						Required   []string              `json:"required"`
						Order      []string              `json:"order"`
					} `json:"userInputs"`
				} `json:"trigger"`
			}
			if err := json.Unmarshal([]byte(read(t, "integrations/port", strings.ToLower(kind)+".json")), &action); err != nil {
				t.Fatal(err)
			}
			inputs, form := action.Trigger.Inputs, formOf(t, kind)
			where := []string{"name", "namespace"}
			paths := func(names []string) []string {
				for i := range names {
					names[i] = strings.ReplaceAll(names[i], "_", ".")
				}

				return slices.Sorted(slices.Values(names))
			}
			fields := slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(form.Properties)), where...)))
			if diff := cmp.Diff(fields, paths(slices.Collect(maps.Keys(inputs.Properties)))); diff != "" {
				t.Errorf("-curated form, +inputs:\n%s", diff)
			}
			if diff := cmp.Diff(append(where, form.Order...), slices.Clone(inputs.Order), cmp.Transformer("path", func(s string) string { return strings.ReplaceAll(s, "_", ".") })); diff != "" {
				t.Errorf("the order: -curated form, +inputs:\n%s", diff)
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(append(where, form.Required...))), paths(inputs.Required)); diff != "" {
				t.Errorf("what is required: -curated form, +inputs:\n%s", diff)
			}
		})
	}
}
