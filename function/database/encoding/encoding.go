// SPDX-License-Identifier: Apache-2.0

// Package encoding compares, hashes and encodes plain data as JSON: values of the planner's own types, for which that cannot
// fail.
package encoding

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/capstan-dev/capstan/function/compose"
)

// JSON text of plain data.
func JSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // The value is not plain data.
	}
	return string(raw)
}

// Hash of plain data, the same for the same JSON.
func Hash(v any) string { return compose.Hash([]byte(JSON(v))) }

// Same reports whether two values have the same JSON.
func Same(a, b any) bool { return JSON(a) == JSON(b) }

// Union of two maps. The second one wins.
func Union(a, b map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// Differing keys of two maps, sorted.
func Differing(a, b map[string]any) []string {
	return slices.DeleteFunc(compose.SortedKeys(Union(a, b)), func(key string) bool { return Same(a[key], b[key]) })
}
