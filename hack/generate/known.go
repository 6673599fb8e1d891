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

	// always is a field that the schema has, where another type has the same name and some of the same fields.
	always string
}

// knownTypes by the name of the field that has them. A field of the same name with other fields is not one of them.
var knownTypes = map[string]known{
	"cache":             {name: "PersistentVolumeClaimSpec", of: "core/v1", fields: []string{"accessModes", "resources", "storageClassName"}},
	"credentials":       {name: "LocalObjectReference", of: "core/v1", fields: []string{"name"}},
	"deviceRequest":     {name: "ExactDeviceRequest", of: "resource.k8s.io/v1", fields: []string{"count", "deviceClassName", "selectors"}},
	"env":               {name: "EnvVar", of: "core/v1", fields: []string{"name", "value", "valueFrom"}},
	"gateway":           {name: "ParentReference", of: "gateway.networking.k8s.io/v1", fields: []string{"name", "namespace", "sectionName"}},
	"imagePullSecrets":  {name: "LocalObjectReference", of: "core/v1", fields: []string{"name"}},
	"initContainers":    {name: "Container", of: "core/v1", fields: []string{"image", "name", "securityContext"}},
	"providerConfigRef": {name: "ProviderConfigReference", of: "Crossplane", fields: []string{"kind", "name"}},
	"job":               {name: "Container", of: "core/v1", fields: []string{"image"}},
	"pod": {name: "PodSpec", of: "core/v1", fields: []string{
		"containers", "imagePullSecrets", "initContainers", "nodeSelector", "priorityClassName", "runtimeClassName", "securityContext",
		"serviceAccountName", "tolerations", "volumes",
	}, always: "containers"},
	"podMetadata":  {name: "ObjectMeta", of: "meta/v1", fields: []string{"annotations", "labels"}},
	"tolerations":  {name: "Toleration", of: "core/v1", fields: []string{"effect", "key", "operator", "tolerationSeconds", "value"}},
	"volumeMounts": {name: "VolumeMount", of: "core/v1", fields: []string{"mountPath", "name", "readOnly", "subPath"}},
	"volumes":      {name: "Volume", of: "core/v1", fields: []string{"name"}},
}

// knownAt returns the type of a field that readers know.
func knownAt(name string, s *schema) (known, bool) {
	k, ok := knownTypes[name]
	_, inner := s.children()
	if !ok || len(inner.Properties) == 0 || k.always != "" && inner.Properties[k.always] == nil {
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
