// SPDX-License-Identifier: Apache-2.0

package encoding_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/function/database/encoding"
)

func TestDiffering(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		a, b   map[string]any
		want   []string
	}{
		"Same":    {"Numbers of two types are the same JSON.", map[string]any{"a": 1}, map[string]any{"a": 1.0}, nil},
		"Changed": {"Keys are sorted.", map[string]any{"b": "x", "a": true}, map[string]any{"b": "y", "a": false}, []string{"a", "b"}},
		"Missing": {"What only one of them has differs.", map[string]any{"a": "x"}, nil, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, encoding.Differing(tc.a, tc.b), cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
