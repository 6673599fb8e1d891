// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// port makes a self-service action for Port. Its inputs have no dots in their names: block_field is block.field, and no field has a low line.
func port(files tree, c crd, f curated) error {
	kind, identifier := c.Spec.Names.Kind, func(at string) string { return strings.ReplaceAll(at, ".", "_") }
	where := []string{paramName, paramNamespace}
	inputs, order := map[string]any{paramName: nameProperty(c), paramNamespace: namespaceProperty()}, slices.Clone(where)
	for _, at := range f.Order {
		input := map[string]any{}
		for _, name := range []string{"title", "description", "type", "items", "enum", "minimum", "maximum", "maxLength", "pattern"} {
			if v, ok := f.Properties[at][name]; ok {
				input[name] = v
			}
		}
		if input["type"] == "integer" {
			input["type"] = "number" // Port has no other.
		}
		inputs[identifier(at)] = input
		order = append(order, identifier(at))
	}
	required := slices.Clone(where)
	for _, at := range f.Required {
		required = append(required, identifier(at))
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(map[string]any{
		"identifier":  "capstan_" + strings.ToLower(kind),
		"title":       kind,
		"description": "A new " + kind + " of Capstan, as a pull request for the repository that is applied to the cluster.",
		"trigger": map[string]any{
			"type": "self-service", "operation": "CREATE", "userInputs": map[string]any{"properties": inputs, "required": required, "order": order},
		},
		"invocationMethod": map[string]any{
			"type": "GITHUB", "org": "ORGANISATION", "repo": "REPOSITORY", "workflow": "capstan.yaml", "reportWorkflowStatus": true,
			"workflowInputs": map[string]any{"manifest": fmt.Sprintf(portManifest, c.Spec.Group+"/"+beta, kind)},
		},
	})
	if err != nil {
		return fmt.Errorf("cannot encode the action of kind %q: %w", kind, err)
	}
	files[path.Join("integrations", "port", strings.ToLower(kind)+".json")] = out.Bytes()
	return nil
}

// portManifest is what the workflow gets: the object with the fields that a person has filled in, as JSON. It is in jq.
const portManifest = `{{ {apiVersion: "%s", kind: "%s", metadata: {name: .inputs.name, namespace: .inputs.namespace}, ` +
	`spec: (.inputs | del(.name, .namespace) | with_entries(select(.value != null and .value != "" and .value != [])) | ` +
	`reduce to_entries[] as $e ({}; setpath($e.key / "_"; $e.value)))} | tojson }}`
