// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// A xrd is a CompositeResourceDefinition as it is written: no status, none of the fields that Crossplane adds.
type xrd struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       xrdSpec  `json:"spec"`
}

type metadata struct {
	Name string `json:"name"`
}

type xrdSpec struct {
	DefaultComposition metadata     `json:"defaultCompositionRef,omitzero"`
	Group              string       `json:"group"`
	Names              names        `json:"names"`
	Scope              string       `json:"scope"`
	Versions           []xrdVersion `json:"versions"`
}

type xrdVersion struct {
	Name           string         `json:"name"`
	Served         bool           `json:"served"`
	Referenceable  bool           `json:"referenceable"`
	PrinterColumns []any          `json:"additionalPrinterColumns,omitempty"`
	Schema         xrdSchema      `json:"schema"`
	Subresources   map[string]any `json:"subresources,omitempty"`
}

type xrdSchema struct {
	OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
}

// definition turns the CRD of a composite kind into its CompositeResourceDefinition.
func definition(root string, c crd) (string, []byte, error) {
	dir := path.Join("apis", strings.ToLower(c.Spec.Names.Kind))
	composition, err := readComposition(filepath.Join(root, dir, "composition.yaml"))
	if err != nil {
		return "", nil, err
	}

	names := c.Spec.Names
	names.Categories = slices.DeleteFunc(slices.Clone(names.Categories), func(s string) bool {
		return s == categoryComposite // Crossplane adds it.
	})
	v := c.Spec.Versions[0]
	stored := xrdVersion{
		Name:           v.Name,
		Served:         v.Served,
		Referenceable:  v.Storage,
		PrinterColumns: v.PrinterColumns,
		Schema:         xrdSchema{OpenAPIV3Schema: withoutMachinery(v.Schema.OpenAPIV3Schema)},
		Subresources:   scale(v.Subresources.Scale),
	}
	beside := stored
	beside.Name, beside.Referenceable = beta, false
	data, err := yaml.Marshal(xrd{
		APIVersion: "apiextensions.crossplane.io/v2",
		Kind:       "CompositeResourceDefinition",
		Metadata:   metadata{Name: c.Metadata.Name},
		Spec: xrdSpec{
			DefaultComposition: composition,
			Group:              c.Spec.Group,
			Names:              names,
			Scope:              c.Spec.Scope,
			Versions:           []xrdVersion{stored, beside},
		},
	})
	if err != nil {
		return "", nil, fmt.Errorf("cannot encode the definition of kind %q: %w", c.Spec.Names.Kind, err)
	}
	return path.Join(dir, "definition.yaml"), append([]byte(c.notice()), data...), nil
}

// readComposition names the Composition beside a definition, which is the one that composite resources use unless they
// choose another. The name is empty when there is none yet.
func readComposition(file string) (metadata, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return metadata{}, nil
	}
	if err != nil {
		return metadata{}, fmt.Errorf("cannot read a composition: %w", err)
	}
	var composition struct {
		Metadata metadata `json:"metadata"`
	}
	if err := yaml.Unmarshal(data, &composition); err != nil {
		return metadata{}, fmt.Errorf("cannot decode composition %q: %w", file, err)
	}
	return composition.Metadata, nil
}

// withoutMachinery leaves out what Crossplane adds to the schema of every composite kind: the object's type and
// metadata, and the conditions.
func withoutMachinery(schema map[string]any) map[string]any {
	schema = maps.Clone(schema)
	properties := maps.Clone(child(schema, "properties"))
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(properties, name)
	}
	schema["properties"] = properties

	if status := maps.Clone(child(properties, "status")); status != nil {
		fields := maps.Clone(child(status, "properties"))
		delete(fields, "conditions")
		status["properties"] = fields
		properties["status"] = status
	}
	return schema
}

// child returns a map inside a map, or nil.
func child(m map[string]any, key string) map[string]any {
	c, _ := m[key].(map[string]any)
	return c
}

// scale is the subresources of a definition. There is no switch for status: it always has one.
func scale(paths map[string]any) map[string]any {
	if paths == nil {
		return nil
	}
	return map[string]any{"scale": paths}
}
