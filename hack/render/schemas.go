// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// writeSchemas turns the CRDs in a folder into the OpenAPI documents that a cluster would serve for them, since the
// function composes optional kinds only when their schema is there. Others' kinds that are unserved are left out.
func writeSchemas(crds, to string, unserved ...string) (string, error) {
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
	// Of others' kinds it counts that they are there.
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	for kind, group := range map[string]string{
		"HTTPRoute": "gateway.networking.k8s.io", "ServiceMonitor": "monitoring.coreos.com", "PrometheusRule": "monitoring.coreos.com",
		"Certificate": "cert-manager.io", "Issuer": "cert-manager.io",
	} {
		if slices.Contains(unserved, kind) {
			continue
		}
		if err := writeDocument(to, group, "v1", kind, maps.Clone(open)); err != nil {
			return "", fmt.Errorf("cannot write a schema of %s: %w", kind, err)
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
		if err := writeDocument(to, crd.Spec.Group, v.Name, crd.Spec.Names.Kind, v.Schema.OpenAPI); err != nil {
			return err
		}
	}
	return nil
}

func writeDocument(to, group, version, kind string, schema map[string]any) error {
	schema["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": group, "version": version, "kind": kind}}
	doc, err := json.Marshal(map[string]any{
		"openapi":    "3.0.0",
		"info":       map[string]any{"title": group, "version": version},
		"components": map[string]any{"schemas": map[string]any{group + "." + version + "." + kind: schema}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, group+"_"+version+"_"+kind+".json"), doc, 0o644)
}
