// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// group is the API group of composite resources and of the function's input; the groups of managed resources end in it.
const group = "capstan.dev"

// beta is the version under which every kind of the packages is served beside the version of its Go types, which is what is stored. Its schema
// is the same, so nothing has to convert one into the other (docs/versions.md).
const beta = "v1beta1"

// A crd is what of a CustomResourceDefinition this program looks at.
type crd struct {
	// raw is the document as controller-gen wrote it.
	raw []byte
	// top is the folder that its Go types are below.
	top string

	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group    string    `json:"group"`
		Names    names     `json:"names"`
		Scope    string    `json:"scope"`
		Versions []version `json:"versions"`
	} `json:"spec"`
}

type names struct {
	Categories []string `json:"categories,omitempty"`
	Kind       string   `json:"kind"`
	ListKind   string   `json:"listKind,omitempty"`
	Plural     string   `json:"plural"`
	ShortNames []string `json:"shortNames,omitempty"`
	Singular   string   `json:"singular,omitempty"`
}

type version struct {
	Name           string `json:"name"`
	Served         bool   `json:"served"`
	Storage        bool   `json:"storage"`
	PrinterColumns []any  `json:"additionalPrinterColumns,omitempty"`
	Schema         struct {
		OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
	} `json:"schema"`
	Subresources struct {
		Scale map[string]any `json:"scale,omitempty"`
	} `json:"subresources,omitzero"`
}

// A role is what a kind is for. It decides where its generated files go.
type role int

const (
	// composite kinds are written by application teams: Crossplane makes their CRD from a definition.
	composite role = iota
	// managed kinds are reconciled by the provider, whose package carries their CRD.
	managed
	// provider kinds configure the provider, whose package carries their CRD.
	provider
	// input is the function's, whose package carries its CRD.
	input
)

// The category of a kind below apis/ is its role, as it does for Crossplane: every CRD that Crossplane makes from a
// definition is in the category composite, what a provider reconciles is in managed, and what configures it in provider.
const (
	categoryComposite = "composite"
	categoryManaged   = "managed"
	categoryProvider  = "provider"
)

// role of a kind.
func (c crd) role() (role, error) {
	if c.top == inputs {
		return input, nil
	}
	for _, category := range c.Spec.Names.Categories {
		switch category {
		case categoryComposite:
			return composite, nil
		case categoryManaged:
			return managed, nil
		case categoryProvider:
			return provider, nil
		}
	}
	return 0, fmt.Errorf("cannot find out what kind %q is for: put it into the category %s, %s or %s with the marker"+
		" +kubebuilder:resource", c.Spec.Names.Kind, categoryComposite, categoryManaged, categoryProvider)
}

// connected reports whether objects of the kind report how an outside service answered.
func (c crd) connected() bool {
	properties, _ := c.Spec.Versions[0].Schema.OpenAPIV3Schema["properties"].(map[string]any)
	spec, _ := properties["spec"].(map[string]any)
	fields, _ := spec["properties"].(map[string]any)
	_, managed := fields["providerConfigRef"]
	_, config := fields["retry"]
	return managed || config
}

// manifest returns the path and content of the file that carries the API of a kind.
func manifest(root string, c crd) (string, []byte, error) {
	r, err := c.role()
	if err != nil {
		return "", nil, err
	}
	switch r {
	case managed, provider:
		data, err := c.served()
		if err != nil {
			return "", nil, err
		}
		return path.Join("package/provider/crds", c.file()), c.document(data), nil
	case input: // nothing serves it
		return path.Join("package/function/input", c.file()), c.document(c.raw), nil
	default:
		return definition(root, c)
	}
}

// file name of a CRD, as is usual.
func (c crd) file() string { return c.Spec.Group + "_" + c.Spec.Names.Plural + ".yaml" }

// served is the CRD with its one version under both names. The one of the Go types is stored.
func (c crd) served() ([]byte, error) {
	var object map[string]any
	if err := yaml.Unmarshal(c.raw, &object); err != nil {
		return nil, fmt.Errorf("cannot decode the CRD of kind %q: %w", c.Spec.Names.Kind, err)
	}
	spec := child(object, "spec")
	versions, _ := spec["versions"].([]any)
	stored, _ := versions[0].(map[string]any)
	beside := maps.Clone(stored)
	beside["name"], beside["storage"] = beta, false
	spec["versions"] = []any{stored, beside}
	data, err := yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the CRD of kind %q: %w", c.Spec.Names.Kind, err)
	}
	return data, nil
}

// document is a CRD with a first line that sends readers to its source.
func (c crd) document(data []byte) []byte {
	return append([]byte(c.notice()), strings.TrimPrefix(string(data), "---\n")...)
}

// notice is the first line of a generated manifest.
func (c crd) notice() string {
	return "# Generated by make generate; edit " + c.source() + " instead.\n"
}

// source is the folder of the Go types of a kind.
func (c crd) source() string {
	subject := strings.TrimSuffix(strings.TrimSuffix(c.Spec.Group, group), ".")
	return path.Join(c.top, subject, c.Spec.Versions[0].Name)
}

// readCRDs reads the CRDs of a folder, made of the types below top, in the order of their file names.
func readCRDs(dir, top string) ([]crd, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot list CRDs: %w", err)
	}
	crds := make([]crd, 0, len(files))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read a CRD: %w", err)
		}
		c := crd{raw: data, top: top}
		if err := yaml.Unmarshal(data, &c); err != nil {
			return nil, fmt.Errorf("cannot decode CRD %q: %w", filepath.Base(file), err)
		}
		if len(c.Spec.Versions) != 1 {
			return nil, fmt.Errorf("cannot generate from %d versions of kind %q: only one is supported",
				len(c.Spec.Versions), c.Spec.Names.Kind)
		}
		crds = append(crds, c)
	}
	return crds, nil
}
