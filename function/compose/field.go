// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Map at a path of decoded JSON, or nil.
func Map(m map[string]any, path ...string) map[string]any {
	v, _ := at(m, path).(map[string]any)
	return v
}

// List at a path of decoded JSON, or nil.
func List(m map[string]any, path ...string) []any {
	v, _ := at(m, path).([]any)
	return v
}

// Text at a path of decoded JSON, or "".
func Text(m map[string]any, path ...string) string {
	v, _ := at(m, path).(string)
	return v
}

// Number at a path of decoded JSON, or the given one when there is none.
func Number(m map[string]any, otherwise int64, path ...string) int64 {
	return number(at(m, path), otherwise)
}

func number(v any, otherwise int64) int64 {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case int64:
		return v
	default:
		return otherwise
	}
}

// Field at a path of decoded JSON, or nil.
func Field(m map[string]any, path ...string) any { return at(m, path) }

// TextOf an object at a path, or "". Nothing else of it is decoded.
func TextOf(o Object, path ...string) string {
	v, _ := o.Field(path...).(string)
	return v
}

// NumberOf an object at a path, or the given one when there is none. Nothing else of it is decoded.
func NumberOf(o Object, otherwise int64, path ...string) int64 {
	return number(o.Field(path...), otherwise)
}

// IsTrue reports whether the condition of a type is True in the status of an object.
func IsTrue(m map[string]any, conditionType xpv2.ConditionType) bool {
	return Condition(m, string(conditionType))["status"] == string(corev1.ConditionTrue)
}

// Condition is the condition of a type in the status of an object, or nil.
func Condition(m map[string]any, conditionType string) map[string]any {
	for _, v := range List(m, "status", "conditions") {
		if c, ok := v.(map[string]any); ok && c["type"] == conditionType {
			return c
		}
	}
	return nil
}

func at(m map[string]any, path []string) any {
	var v any = m
	for _, k := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

// SortedKeys of a map.
func SortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
