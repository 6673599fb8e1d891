// SPDX-License-Identifier: Apache-2.0

// Package observed has typed views of the objects that exist. A view decodes a part of an object when that part is used, and no
// sooner. What cannot be read, as from a later version of its kind, reads like what is absent.
package observed

import (
	"encoding/json"

	"github.com/capstan-dev/capstan/function/compose"
)

// Status is what the provider reports of a managed resource, and whether it reports anything yet.
func Status[T any](o compose.Object) (T, bool) {
	var zero T
	if o == nil {
		return zero, false
	}
	seen, ok := o.Field("status", "atProvider").(map[string]any)
	if !ok {
		return zero, false
	}
	return decode[T](seen)
}

// Parameters in the spec of an observed managed resource. It is not ok without them, or when they cannot be read.
func Parameters[T any](o compose.Object) (T, bool) {
	var zero T
	if o == nil {
		return zero, false
	}
	wanted, ok := o.Field("spec", "forProvider").(map[string]any)
	if !ok {
		return zero, false
	}
	return decode[T](wanted)
}

// decode JSON into its type, and report whether it could be read.
func decode[T any](value any) (T, bool) {
	var zero, v T
	raw, err := json.Marshal(value)
	if err != nil {
		return zero, false
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return zero, false
	}
	return v, true
}
