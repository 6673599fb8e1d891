// SPDX-License-Identifier: Apache-2.0

package composetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// An Example of the documentation: a composite resource, what its golden file has observed, and what was composed of it.
type Example struct {
	XR             map[string]any
	Observed, Want []map[string]any
}

// Examples in a folder, such as examples/algorithm, by their names. Examples without a composite resource are not among them.
func Examples(folder string) (map[string]Example, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*", "xr.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot use folder %s: %w", folder, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("cannot find examples in %s", folder)
	}
	all := map[string]Example{}
	for _, file := range files {
		at := filepath.Dir(file)
		xr, err := Documents(file)
		if err != nil {
			return nil, err
		}
		e := Example{XR: xr[0]}
		if e.Observed, err = Documents(filepath.Join(at, "observed", "*.yaml")); err != nil {
			return nil, err
		}
		if e.Want, err = Documents(filepath.Join(at, "want.yaml")); err != nil {
			return nil, err
		}
		all[filepath.Base(at)] = e
	}
	return all, nil
}

// Documents of the YAML files that match a pattern.
func Documents(pattern string) ([]map[string]any, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", pattern, err)
	}
	var all []map[string]any
	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // Tests name it.
		if err != nil {
			return nil, fmt.Errorf("cannot read an example: %w", err)
		}
		for document := range bytes.SplitSeq(raw, []byte("\n---\n")) {
			var o map[string]any
			if err := yaml.Unmarshal(document, &o); err != nil {
				return nil, fmt.Errorf("cannot read %s: %w", file, err)
			}
			if o != nil {
				all = append(all, o)
			}
		}
	}
	return all, nil
}
