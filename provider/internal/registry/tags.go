// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"slices"

	"github.com/capstan-dev/capstan/provider/internal/mlflow"
)

// A TagDiff is what has to be done to the tags of an entry.
type TagDiff struct {
	// Set these keys, sorted, to what is wanted.
	Set []string

	// Remove these keys, sorted.
	Remove []string
}

// Empty reports whether nothing has to be done.
func (d TagDiff) Empty() bool { return len(d.Set)+len(d.Remove) == 0 }

// DiffTags compares what is wanted with what is there. Only keys that were set
// for the same managed resource before, and are no longer wanted, are removed:
// all others are another owner's.
func DiffTags(want map[string]string, have mlflow.Tags, before []string) TagDiff {
	var d TagDiff
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if v, ok := have[k]; !ok || v != want[k] {
			d.Set = append(d.Set, k)
		}
	}
	for _, k := range slices.Sorted(slices.Values(before)) {
		_, wanted := want[k]
		_, there := have[k]
		if there && !wanted {
			d.Remove = append(d.Remove, k)
		}
	}
	return d
}

// OwnKeys are the keys, sorted, that are there and were set for the managed resource: those that are wanted, and those from
// before that are still to be removed.
func OwnKeys(want map[string]string, have mlflow.Tags, before []string) []string {
	var own []string
	for _, k := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[k]; ok || slices.Contains(before, k) {
			own = append(own, k)
		}
	}
	return own
}

// Describe reports whether the description has to be changed. One that is not wanted stays as it is.
func Describe(want *string, have string) bool { return want != nil && *want != have }
