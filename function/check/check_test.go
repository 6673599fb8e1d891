// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

func TestProblems(t *testing.T) {
	invalid := func(message string) []Problem { return []Problem{{v1alpha1.ReasonInvalidSpec, message}} }
	cases := map[string]struct {
		reason string
		got    []Problem
		want   []Problem
	}{
		"Errors": {
			reason: "The path, the value and the remedy are in the message.",
			got:    Errors(field.ErrorList{field.Invalid(field.NewPath("spec", "n"), 4, "must be from 1 to 3")}),
			want:   invalid("spec.n: 4: must be from 1 to 3"),
		},
		"Omitted": {
			reason: "A value that is omitted is not in the message.",
			got:    Errors(field.ErrorList{field.Invalid(field.NewPath("spec", "o"), field.OmitValueType{}, "set it")}),
			want:   invalid("spec.o: set it"),
		},
		"Settings": {reason: "Settings without an error are fine.", got: Settings(nil)},
		"SettingsNo": {
			reason: "The error is told.", got: Settings(errors.New("no such plan")),
			want: []Problem{{v1alpha1.ReasonInvalidSettings, "platform settings: no such plan"}},
		},
		"Long": {
			reason: "A long text is cut at a character.", got: []Problem{Invalid("spec.t", strings.Repeat("ä", 61), "must be shorter")},
			want: invalid(`spec.t: "` + strings.Repeat("ä", 59) + `…": must be shorter`),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAccepted(t *testing.T) {
	of := func(n int) []Problem {
		ps := make([]Problem, 0, n)
		for i := range n {
			ps = append(ps, Invalid("spec.n", i, "must not be"))
		}
		return All(ps, []func([]Problem) []Problem{func(ps []Problem) []Problem { return ps }})
	}
	cases := map[string]struct {
		reason   string
		problems []Problem
		want     xpv2.Condition
	}{
		"None": {
			reason: "Without a problem the spec is carried out.",
			want:   xpv2.Condition{Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonValid, Message: "the spec is carried out"},
		},
		"Two": {
			reason:   "All problems are told, so that one edit can correct them; the first gives the reason.",
			problems: append([]Problem{{v1alpha1.ReasonInvalidSettings, "settings"}}, of(1)...),
			want: xpv2.Condition{
				Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonInvalidSettings, Message: "settings; spec.n: 0: must not be",
			},
		},
		"Many": {
			reason:   "Who corrects the first five sees the rest.",
			problems: of(7),
			want: xpv2.Condition{
				Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonInvalidSpec,
				Message: "spec.n: 0: must not be; spec.n: 1: must not be; spec.n: 2: must not be; spec.n: 3: must not be; " +
					"spec.n: 4: must not be; and 2 more",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Type = v1alpha1.TypeAccepted
			if diff := cmp.Diff(tc.want, Accepted(tc.problems)); diff != "" {
				t.Errorf("%s\nAccepted(…): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
