// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// A curated is what portals take from the curated form of a kind.
type curated struct {
	Required   []string                  `json:"required"`
	Dependent  map[string][]string       `json:"dependentRequired"`
	Properties map[string]map[string]any `json:"properties"`
	Order      []string                  `json:"ui:order"`
}

// Fields that say where the object is. All others are paths below the spec.
const (
	paramName      = "name"
	paramNamespace = "namespace"
)

// portals makes what they need for a kind from its form.
func portals(files tree, c crd, form []byte) error {
	var f curated
	if err := json.Unmarshal(form, &f); err != nil {
		return fmt.Errorf("cannot read the form of kind %q: %w", c.Spec.Names.Kind, err)
	}
	for _, name := range []string{paramName, paramNamespace} {
		if _, ok := f.Properties[name]; ok {
			return fmt.Errorf("cannot make a form for portals of kind %q: its form has a field %s, which is where the object is", c.Spec.Names.Kind, name)
		}
	}
	if err := backstage(files, c, f); err != nil {
		return err
	}
	return port(files, c, f)
}

var matches = regexp.MustCompile(`^self\.metadata\.name\.matches\('([^']+)'\)$`)

// nameProperty has the rule for names of a kind, and its message. Without one, a name is a DNS label.
func nameProperty(c crd) map[string]any {
	p := map[string]any{"title": "Name", "type": typeString, "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
	rules, _ := c.Spec.Versions[0].Schema.OpenAPIV3Schema["x-kubernetes-validations"].([]any)
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		if m := matches.FindStringSubmatch(fmt.Sprint(rule["rule"])); m != nil {
			p["pattern"], p["description"] = m[1], rule["message"]
		}
	}
	return p
}

func namespaceProperty() map[string]any {
	return map[string]any{
		"title": "Namespace", "type": typeString, "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
		"description": "Namespace of the cluster, which has to exist.",
	}
}
