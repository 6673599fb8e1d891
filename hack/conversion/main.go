// SPDX-License-Identifier: Apache-2.0

// Conversion fails where the versions of a kind that are served side by side differ.
// Every object can be read and written under each of them, and the API server only
// changes its apiVersion. A field that one version lacks would be lost on that way, and
// a default that only one has would come and go.
//
// Its arguments are files of CustomResourceDefinitions and CompositeResourceDefinitions.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"

	"sigs.k8s.io/yaml"
)

// own are the fields in which versions of one kind may differ: which one it is, whether it is stored, and what clients are warned of.
var own = []string{"name", "storage", "referenceable", "deprecated", "deprecationWarning"}

func main() {
	var errs []error
	for _, file := range os.Args[1:] {
		data, err := os.ReadFile(file)
		if err == nil {
			err = check(data)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check that the served versions of a definition are equal.
func check(definition []byte) error {
	var kind struct {
		Spec struct {
			Versions []map[string]any `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(definition, &kind); err != nil {
		return fmt.Errorf("cannot decode a definition: %w", err)
	}
	served := slices.DeleteFunc(kind.Spec.Versions, func(v map[string]any) bool { return v["served"] != true })
	if len(served) == 0 {
		return errors.New("cannot find a version that is served")
	}
	first := served[0]
	var errs []error
	for _, v := range served[1:] {
		for _, path := range differences("", without(first), without(v)) {
			errs = append(errs, fmt.Errorf("%v and %v differ at %s", first["name"], v["name"], path))
		}
	}
	return errors.Join(errs...)
}

// without what is a version's own.
func without(version map[string]any) map[string]any {
	version = maps.Clone(version)
	for _, field := range own {
		delete(version, field)
	}
	return version
}

// differences are the paths at which two values are not the same, as deep as both are objects.
func differences(path string, a, b any) []string {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	x, one := a.(map[string]any)
	y, other := b.(map[string]any)
	if !one || !other {
		return []string{path}
	}
	all := maps.Clone(x)
	maps.Copy(all, y)
	var paths []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		before, had := x[key]
		after, has := y[key]
		if had != has {
			paths = append(paths, path+"."+key)
			continue
		}
		paths = append(paths, differences(path+"."+key, before, after)...)
	}
	return paths
}
