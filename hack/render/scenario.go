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
