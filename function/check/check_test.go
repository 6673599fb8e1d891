// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

func TestProblems(t *testing.T) {
	type mode string

	invalid := func(message string) []Problem { return []Problem{{v1alpha1.ReasonInvalidSpec, message}} }

	cases := map[string]struct {
		reason string
		got    []Problem
		want   []Problem
	}{
		"Between":   {reason: "Bounds belong to what is allowed.", got: Between("spec.n", 3, 3, 3)},
		"BetweenNo": {reason: "The bounds are told.", got: Between("spec.n", 4, 1, 3), want: invalid("spec.n: 4: must be from 1 to 3")},
		"Among":     {reason: "One of the words is fine.", got: Among("spec.m", mode("b"), "a", "b")},
		"AmongNo":   {reason: "All of the words are told.", got: Among("spec.m", mode("d"), "a", "b", "c"), want: invalid(`spec.m: "d": must be a, b or c`)},
		"Shaped":    {reason: "What is not set needs no shape.", got: Shaped("spec.s", "", regexp.MustCompile(`^x$`), "must be x")},
		"ShapedNo": {
			reason: "The remedy is the caller's.", got: Shaped("spec.s", "y", regexp.MustCompile(`^x$`), "must be x"),
			want: invalid(`spec.s: "y": must be x`),
		},
		"ObjectName": {reason: "Names have dots.", got: ObjectName("spec.ref.name", "a.b-c")},
		"Settings":   {reason: "Settings without an error are fine.", got: Settings(nil)},
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

	if got := ObjectName("spec.ref.name", "A"); len(got) != 1 || !strings.HasPrefix(got[0].Message, `spec.ref.name: "A": a lowercase RFC 1123 subdomain`) {
		t.Errorf("Kubernetes says what is wrong with a name: got %v", got)
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

func TestDecode(t *testing.T) {
	var into struct {
		N int `json:"n"`
	}

	if got := Decode(map[string]any{"n": int64(3)}, &into); got != nil || into.N != 3 {
		t.Errorf("What fits should be decoded: got %d, %v", into.N, got)
	}

	got := Decode(map[string]any{"n": "three"}, &into)
	if len(got) != 1 || !strings.HasPrefix(got[0].Message, "spec: cannot be read: ") || !strings.HasSuffix(got[0].Message, ": correct the type of that field") {
		t.Errorf("What does not fit should be a problem with a remedy: got %v", got)
	}
}
