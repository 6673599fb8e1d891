// SPDX-License-Identifier: Apache-2.0

package repository

import "golang.org/x/sync/errgroup"

// parallel requests.
const parallel = 8

// each does something with all of a list, several at a time, and returns the first error.
func each[T any](all []T, do func(int, T) error) error {
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, one := range all {
		g.Go(func() error { return do(i, one) })
	}
	return g.Wait()
}
