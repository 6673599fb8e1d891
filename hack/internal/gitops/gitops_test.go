// SPDX-License-Identifier: Apache-2.0

// Package gitops tests what install has for Argo CD and Flux, and what Kustomize makes of package: the scripts run
// with the libraries that Argo CD and Flux use, over what Capstan says of itself.
package gitops

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	utilyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

// read a file of the repository.
func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// documents of a YAML stream.
func documents(t *testing.T, data []byte) []map[string]any {
	t.Helper()
	var all []map[string]any
	d := utilyaml.NewDecoder(bytes.NewReader(data))
	for {
		var raw any
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		text, err := utilyaml.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, object(t, string(text)))
	}
}

// object of one YAML document. Numbers are float64 or int64, as Argo CD and Flux have them.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return o
}

// at a path in an object.
func at(v any, path ...string) any {
	for _, k := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

// text at a path in an object.
func text(v any, path ...string) string {
	s, _ := at(v, path...).(string)
	return s
}
