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
			inputs, form, where := action.Trigger.Inputs, formOf(t, kind), []string{"name", "namespace"}
			sorted := func(names ...string) []string { return slices.Sorted(slices.Values(names)) }
			field := cmp.Transformer("field", func(input string) string { return strings.ReplaceAll(input, "_", ".") })
			if diff := cmp.Diff(append(where, form.Order...), inputs.Order, field); diff != "" {
				t.Errorf("-curated form, +order of the inputs:\n%s", diff)
			}
			if diff := cmp.Diff(sorted(inputs.Order...), sorted(slices.Collect(maps.Keys(inputs.Properties))...)); diff != "" {
				t.Errorf("-order of the inputs, +inputs:\n%s", diff)
			}
			if diff := cmp.Diff(append(where, form.Required...), inputs.Required, field); diff != "" {
				t.Errorf("-required in the curated form, +required inputs:\n%s", diff)
			}
		})
	}
}
