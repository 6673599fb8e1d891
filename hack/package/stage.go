// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// The folders of a staged package.
const (
	stagedPackage  = "package"
	stagedExamples = "examples"
)

// stage copies what belongs into a package below dir, and nothing else: the CLI takes every YAML file below the folder it
// is pointed at.
func (p *project) stage(a artifact, dir string) error {
	meta, err := os.ReadFile(filepath.Join(p.root, a.Meta))
	if err != nil {
		return fmt.Errorf("cannot read what describes %s: %w", a.Name, err)
	}
	meta, err = setDependencies(meta, p.version, p.pins)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", a.Meta, err)
	}
	if err := write(filepath.Join(dir, stagedPackage, "crossplane.yaml"), meta); err != nil {
		return err
	}
	if err := p.copyMatches(a.Contents, filepath.Join(dir, stagedPackage)); err != nil {
		return err
	}
	return p.copyMatches(a.Examples, filepath.Join(dir, stagedExamples))
}

// copyMatches copies every file that matches a pattern to the same path below dir.
func (p *project) copyMatches(patterns []string, dir string) error {
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(p.root, pattern))
		if err != nil {
			return fmt.Errorf("cannot list %s: %w", pattern, err)
		}
		if len(files) == 0 {
			return fmt.Errorf("cannot find %s: `make generate` writes what is generated", pattern)
		}
		for _, file := range files {
			rel, err := filepath.Rel(p.root, file)
			if err != nil {
				return fmt.Errorf("cannot stage %s: %w", file, err)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("cannot stage %s: %w", rel, err)
			}
			if err := write(filepath.Join(dir, rel), data); err != nil {
				return err
			}
		}
	}
	return nil
}

// setDependencies makes a package ask for dependencies at least as new as itself, or for exactly those whose digests are given. Crossplane
// compares a digest only with a digest: what is installed by one has to be asked for by it.
func setDependencies(meta []byte, version string, pins map[string]string) ([]byte, error) {
	var object map[string]any
	if err := yaml.Unmarshal(meta, &object); err != nil {
		return nil, err
	}
	spec, _ := object["spec"].(map[string]any)
	dependencies, _ := spec["dependsOn"].([]any)
	for _, d := range dependencies {
		dependency, ok := d.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("cannot understand dependency %v", d)
		}
		dependency["version"] = ">=" + version
		source, _ := dependency["package"].(string)
		if digest, ok := pins[source]; ok {
			dependency["version"] = digest
		}
	}
	return yaml.Marshal(object)
}

func write(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("cannot stage %s: %w", file, err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return fmt.Errorf("cannot stage %s: %w", file, err)
	}
	return nil
}
