// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"slices"
	"strings"
	"testing"
)

// Classified fails for a field of a spec without a decision: whether another value of it makes another revision, which starts pods again.
// Fields are all fields of the schema, by their paths. Managed are the paths of fields and blocks that do not reach pods, and podInputs the
// fields that do.
func Classified(tb testing.TB, fields map[string]any, managed, podInputs []string) {
	tb.Helper()
	for path := range fields {
		reaches := slices.Contains(podInputs, path)
		isManaged := slices.ContainsFunc(managed, func(m string) bool {
			return path == m || strings.HasPrefix(path, m+".") || strings.HasPrefix(path, m+"[")
		})
		switch {
		case reaches && isManaged:
			tb.Errorf("spec.%s is both in managed and in podInputs: remove it from one of them", path)
		case !reaches && !isManaged:
			tb.Errorf("spec.%s is neither in managed nor in podInputs. Does another value of it change the pods? Then add it to podInputs of this "+
				"test: each change makes a revision. Otherwise add it to managed. A default of it must mean what was before the field", path)
		}
	}
	for _, path := range podInputs {
		if _, ok := fields[path]; !ok {
			tb.Errorf("podInputs has spec.%s, which the schema does not have: remove it", path)
		}
	}
}
