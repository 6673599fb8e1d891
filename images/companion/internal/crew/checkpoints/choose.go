// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"cmp"
	"slices"

	"github.com/capstan-dev/capstan/apis/crew"
)

// Merge reported and found checkpoints, the newest first: by step, and by time when the step is the same.
func Merge(lists ...[]crew.Checkpoint) []crew.Checkpoint {
	at := map[string]int{}
	var all []crew.Checkpoint
	for _, list := range lists {
		for _, c := range list {
			if i, known := at[c.URI]; known {
				if c.At.After(all[i].At) {
					all[i] = c
				}
				continue
			}
			at[c.URI] = len(all)
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b crew.Checkpoint) int {
		return cmp.Or(cmp.Compare(b.Step, a.Step), b.At.Compare(a.At), cmp.Compare(a.URI, b.URI))
	})
	return all
}

// Without the discarded ones.
func Without(all []crew.Checkpoint, discarded []Discard) []crew.Checkpoint {
	var left []crew.Checkpoint
	for _, c := range all {
		if !slices.ContainsFunc(discarded, func(d Discard) bool { return c.Step >= d.From && !c.At.After(d.Until) }) {
			left = append(left, c)
		}
	}
	return left
}
