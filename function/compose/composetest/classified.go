// SPDX-License-Identifier: Apache-2.0

package composetest

import (
	"slices"
	"strings"
	"testing"
)

// Classified fails for a field of a spec without a decision: whether another value of it makes another revision, which starts pods again.
// Fields are all fields of the schema, by their paths. podInputs are the paths of fields and blocks that reach pods, and managed of all others.
func Classified[T any](tb testing.TB, fields map[string]T, managed, podInputs []string) {
	tb.Helper()
	for path := range fields {
		reaches, isManaged := covered(podInputs, path), covered(managed, path)
		switch {
		case reaches && isManaged:
			tb.Errorf("spec.%s is both in managed and in podInputs: remove it from one of them", path)
		case !reaches && !isManaged:
			tb.Errorf("spec.%s is neither in managed nor in podInputs. Does another value of it change the pods? Then add it to podInputs of this "+
				"test: each change makes a revision. Otherwise add it to managed. A default of it must mean what was before the field", path)
		}
	}
	for _, entry := range slices.Concat(podInputs, managed) {
		used := false
		for path := range fields {
			used = used || covered([]string{entry}, path)
		}
		if !used {
			tb.Errorf("the schema has no field spec.%s: remove it from the lists of this test", entry)
		}
	}
}

// covered reports whether a list has a path or a block that it is in.
func covered(list []string, path string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return path == entry || strings.HasPrefix(path, entry+".") || strings.HasPrefix(path, entry+"[")
	})
}
