// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// writeSchemas turns the CRDs in a folder into the OpenAPI documents that a cluster would serve for them, since the
// function composes optional kinds only when their schema is there.
func writeSchemas(crds, to string) (string, error) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the folder of schemas: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if err := writeSchema(file, to); err != nil {
			return "", fmt.Errorf("cannot take the schema from %q: %w", file, err)
		}
	}
	return to, nil
}

func writeSchema(file, to string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd struct {
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					OpenAPI map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return err
	}
	for _, v := range crd.Spec.Versions {
		schema := v.Schema.OpenAPI
		schema["x-kubernetes-group-version-kind"] = []any{
			map[string]any{"group": crd.Spec.Group, "version": v.Name, "kind": crd.Spec.Names.Kind},
		}
		doc, err := json.Marshal(map[string]any{
			"openapi":    "3.0.0",
			"info":       map[string]any{"title": crd.Spec.Group, "version": v.Name},
			"components": map[string]any{"schemas": map[string]any{crd.Spec.Group + "." + v.Name + "." + crd.Spec.Names.Kind: schema}},
		})
		if err != nil {
			return err
		}
		name := crd.Spec.Group + "_" + v.Name + "_" + crd.Spec.Names.Kind + ".json"
		if err := os.WriteFile(filepath.Join(to, name), doc, 0o644); err != nil {
			return err
		}
	}
	return nil
}
