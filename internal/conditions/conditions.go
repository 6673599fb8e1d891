// SPDX-License-Identifier: Apache-2.0

// Package conditions says which conditions of an object people have to look at, for all programs that show them.
package conditions

import (
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// informs are conditions that are False without anything being wrong.
var informs = []xpv2.ConditionType{v1alpha1.TypeAsleep, v1alpha1.TypeDataDrift, v1alpha1.TypeDeletionProtected, xpv2.TypeReady}

// Blocks are the conditions of an object that are not as they should be, in their order.
func Blocks(all []xpv2.Condition) []xpv2.Condition {
	var blocking []xpv2.Condition
	for _, c := range all {
		switch bad := c.Status != corev1.ConditionTrue; {
		case c.Type == v1alpha1.TypeDataDrift && c.Status == corev1.ConditionTrue:
			blocking = append(blocking, c)
		case bad && !slices.Contains(informs, c.Type):
			blocking = append(blocking, c)
		}
	}

	return blocking
}

// Visible text: a message of others cannot move the cursor, or colour what follows.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}

		return r
	}, s)
}

// VisibleLines is Visible text that keeps its lines and tabs.
func VisibleLines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}

		return r
	}, s)
}
