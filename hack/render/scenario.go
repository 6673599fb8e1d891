// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// A scenario is a composite resource and what surrounds it.
type scenario struct {
	name     string // the folder, or the file
	xr       string
	kind     string // in lower case, as in the folder names below apis/
	observed string // a folder, or empty
	required string // a folder, or empty

	steady     string // a golden report of where it ends, or empty
	simulation string // a file, or empty
	unserved   string // a file with kinds that the cluster does not serve, or empty
}

func (c *command) scenarios() ([]scenario, error) {
	if len(c.Scenarios) > 1 && (c.Observed != "" || c.Required != "") {
		return nil, errors.New("--observed and --required go with one scenario; many scenarios carry their own folders")
	}
	all := make([]scenario, 0, len(c.Scenarios))
	for _, path := range c.Scenarios {
		s := scenario{name: path, xr: path, observed: c.Observed, required: c.Required}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			s.xr = filepath.Join(path, "xr.yaml")
			s.observed = or(s.observed, folder(path, "observed"))
			s.required = or(s.required, folder(path, "required"))
			s.steady = file(path, fileSteady)
			s.simulation = file(path, "simulation.yaml")
			s.unserved = file(path, "unserved.yaml")
		}
		kind, err := kindOf(s.xr)
		if err != nil {
			return nil, err
		}
		s.kind = kind
		all = append(all, s)
	}
	return all, nil
}

func kindOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the composite resource: %w", err)
	}
	var xr struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(data, &xr); err != nil {
		return "", fmt.Errorf("cannot parse the composite resource %q: %w", path, err)
	}
	if xr.Kind == "" {
		return "", fmt.Errorf("%q has no kind", path)
	}
	return strings.ToLower(xr.Kind), nil
}

// stored returns the composite resource as Crossplane reads it from an API server: in the version to which the Composition refers, whichever
// it was written in. It writes a copy into a folder unless that is its version already.
func stored(path, composition, dir string) (string, error) {
	var xr map[string]any
	if err := readYAML(path, &xr); err != nil {
		return "", err
	}
	data, err := os.ReadFile(composition)
	if err != nil {
		return "", fmt.Errorf("cannot read the Composition: %w", err)
	}
	var c struct {
		Spec struct {
			CompositeTypeRef struct {
				APIVersion string `json:"apiVersion"`
			} `json:"compositeTypeRef"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		return "", fmt.Errorf("cannot parse %q: %w", composition, err)
	}
	version := c.Spec.CompositeTypeRef.APIVersion
	if xr["apiVersion"] == version {
		return path, nil
	}
	xr["apiVersion"] = version
	if data, err = yaml.Marshal(xr); err != nil {
		return "", fmt.Errorf("cannot encode the composite resource %q: %w", path, err)
	}
	copied := filepath.Join(dir, "xr.yaml")
	if err := os.WriteFile(copied, data, 0o600); err != nil {
		return "", fmt.Errorf("cannot copy the composite resource %q: %w", path, err)
	}
	return copied, nil
}

func folder(parent, name string) string {
	path := filepath.Join(parent, name)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return path
	}
	return ""
}

func file(parent, name string) string {
	path := filepath.Join(parent, name)
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return path
	}
	return ""
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
