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
	all := documents{}
	for _, file := range files {
		if err := all.read(file); err != nil {
			return "", fmt.Errorf("cannot take the schema from %q: %w", file, err)
		}
	}
	// Of others' kinds it counts that they are there.
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	for kind, group := range map[string]string{
		"HTTPRoute": "gateway.networking.k8s.io", "GRPCRoute": "gateway.networking.k8s.io", "ResourceClaimTemplate": "resource.k8s.io", "ServiceMonitor": "monitoring.coreos.com", "PodMonitor": "monitoring.coreos.com", "PrometheusRule": "monitoring.coreos.com",
		"Certificate": "cert-manager.io", "Issuer": "cert-manager.io", "VolumeSnapshot": "snapshot.storage.k8s.io", "VolumeSnapshotClass": "snapshot.storage.k8s.io",
	} {
		if !slices.Contains(unserved, kind) {
			all.add(group, "v1", kind, maps.Clone(open))
		}
	}
	if err := all.write(to); err != nil {
		return "", fmt.Errorf("cannot write the schemas: %w", err)
	}
	return to, nil
}

// documents by group and version. There is one for all kinds of a version, as in a cluster: Crossplane looks into no second one.
type documents map[[2]string]map[string]any

func (d documents) add(group, version, kind string, schema map[string]any) {
	schema["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": group, "version": version, "kind": kind}}
	at := [2]string{group, version}
	if d[at] == nil {
		d[at] = map[string]any{}
	}
	d[at][group+"."+version+"."+kind] = schema
}

func (d documents) read(file string) error {
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
		d.add(crd.Spec.Group, v.Name, crd.Spec.Names.Kind, v.Schema.OpenAPI)
	}
	return nil
}

func (d documents) write(to string) error {
	for at, schemas := range d {
		doc, err := json.Marshal(map[string]any{
			"openapi":    "3.0.0",
			"info":       map[string]any{"title": at[0], "version": at[1]},
			"components": map[string]any{"schemas": schemas},
		})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, at[0]+"_"+at[1]+".json"), doc, 0o644); err != nil {
			return err
		}
	}
	return nil
}
