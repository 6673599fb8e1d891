// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A known type is one of another project that readers know, such as EnvVar. The reference has one row for a field of it, with the
// fields that the schema has of it and what is checked in them: their meaning is described by that project.
type known struct {
	name, of string

	// fields of the type that the schema may have.
	fields []string
}

// knownTypes by the name of the field that has them. A field of the same name with other fields is not one of them.
var knownTypes = map[string]known{
	"credentials":       {"LocalObjectReference", "core/v1", []string{"name"}},
	"env":               {"EnvVar", "core/v1", []string{"name", "value", "valueFrom"}},
	"gateway":           {"ParentReference", "gateway.networking.k8s.io/v1", []string{"name", "namespace", "sectionName"}},
	"imagePullSecrets":  {"LocalObjectReference", "core/v1", []string{"name"}},
	"initContainers":    {"Container", "core/v1", []string{"image", "name", "securityContext"}},
	"providerConfigRef": {"ProviderConfigReference", "Crossplane", []string{"kind", "name"}},
	"sidecars":          {"Container", "core/v1", []string{"image", "name", "securityContext"}},
	"tolerations":       {"Toleration", "core/v1", []string{"effect", "key", "operator", "tolerationSeconds", "value"}},
	"volumeMounts":      {"VolumeMount", "core/v1", []string{"mountPath", "name", "readOnly", "subPath"}},
	"volumes":           {"Volume", "core/v1", []string{"name"}},
}

// knownAt returns the type of a field that readers know.
func knownAt(name string, s *schema) (known, bool) {
	k, ok := knownTypes[name]
	_, inner := s.children()
	if !ok || len(inner.Properties) == 0 {
		return known{}, false
	}
	for property := range inner.Properties {
		if !slices.Contains(k.fields, property) {
			return known{}, false
		}
	}
	return k, true
}

// kind of value in plain words.
func (f field) kind() string {
	k, ok := f.knownType()
	switch {
	case !ok:
		return f.schema.kind()
	case f.Items != nil:
		return "list of " + k.name + " as in " + k.of
	default:
		return k.name + " as in " + k.of
	}
}

func (f field) knownType() (known, bool) {
	return knownAt(f.path[strings.LastIndex(f.path, ".")+1:], f.schema)
}

// parts of a known type that the schema has, and what is checked in them.
func parts(w *bytes.Buffer, f field) {
	if _, ok := f.knownType(); !ok {
		return
	}
	_, inner := f.children()
	var names []string
	below := fieldsBelow(inner)
	for _, b := range below {
		name := "`" + strings.TrimPrefix(b.path, ".") + "`"
		if b.required {
			name += " (required)"
		}
		names = append(names, name)
	}
	fmt.Fprintf(w, "- Fields: %s\n", strings.Join(names, ", "))
	for _, b := range below {
		checks(w, "Checked in `"+strings.TrimPrefix(b.path, ".")+"`", b.Rules)
	}
}

// countable returns the number of fields of a spec that the reference describes.
func countable(s *schema) int {
	spec := s.Properties["spec"]
	if spec == nil {
		return len(fields(s))
	}
	return len(fields(spec))
}
