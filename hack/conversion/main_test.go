// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	const stored = `{name: v1alpha1, served: true, storage: true, schema: {properties: {size: {type: integer, default: 1}, rules: [{rule: a}]}}}`
	cases := map[string]struct {
		reason string
		beside string
		want   string
	}{
		"Same": {
			reason: "Only the name and what is stored may differ.",
			beside: `{name: v1beta1, served: true, storage: false, deprecated: true, schema: {properties: {size: {default: 1, type: integer}, rules: [{rule: a}]}}}`,
		},
		"Changed": {
			reason: "A default of one version comes and goes with the version that a client uses.",
			beside: `{name: v1beta1, served: true, schema: {properties: {size: {type: integer, default: 2}, rules: [{rule: a}]}}}`,
			want:   "v1alpha1 and v1beta1 differ at .schema.properties.size.default",
		},
		"Missing": {
			reason: "A field that one version lacks is lost where it is written.",
			beside: `{name: v1beta1, served: true, schema: {properties: {rules: [{rule: a}]}}}`,
			want:   "v1alpha1 and v1beta1 differ at .schema.properties.size",
		},
		"Rule": {
			reason: "What one version refuses, the other must refuse.",
			beside: `{name: v1beta1, served: true, schema: {properties: {size: {type: integer, default: 1}, rules: [{rule: b}]}}}`,
			want:   "v1alpha1 and v1beta1 differ at .schema.properties.rules",
		},
		"Columns": {
			reason: "People see the same, whichever version their client prefers.",
			beside: `{name: v1beta1, served: true, additionalPrinterColumns: [], schema: {properties: {size: {type: integer, default: 1}, rules: [{rule: a}]}}}`,
			want:   "v1alpha1 and v1beta1 differ at .additionalPrinterColumns",
		},
		"NotServed": {
			reason: "Nobody reads or writes a version that is not served.",
			beside: `{name: v1, served: false, schema: {}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := check(fmt.Appendf(nil, "spec: {versions: [%s, %s]}", stored, tc.beside)); err != nil {
				got = strings.TrimSpace(err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
