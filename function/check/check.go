// SPDX-License-Identifier: Apache-2.0

// Package check is what the checks of specs have in common: what a problem is, how it is worded, and how problems are reported.
package check

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A Problem keeps a spec from being carried out. Its message names field, value and remedy.
type Problem struct {
	Reason  xpv2.ConditionReason
	Message string
}

// All problems that checks find, in their order.
func All[S any](s S, checks []func(S) []Problem) []Problem {
	ps := make([]Problem, 0, len(checks))
	for _, check := range checks {
		ps = append(ps, check(s)...)
	}
	return ps
}

// maxProblems that one message has. A person who corrects these sees the rest.
const maxProblems = 5

// Accepted is the condition of that type, for the problems of a spec.
func Accepted(problems []Problem) xpv2.Condition {
	n := len(problems)
	if n == 0 {
		return xpv2.Condition{
			Type: v1alpha1.TypeAccepted, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonValid, Message: "the spec is carried out",
		}
	}
	words := make([]string, 0, maxProblems+1)
	for _, p := range problems[:min(n, maxProblems)] {
		words = append(words, p.Message)
	}
	if n > maxProblems {
		words = append(words, fmt.Sprintf("and %d more", n-maxProblems))
	}
	return xpv2.Condition{
		Type: v1alpha1.TypeAccepted, Status: corev1.ConditionFalse, Reason: problems[0].Reason, Message: strings.Join(words, "; "),
	}
}

// Invalid value of a field. One that is omitted is not repeated.
func Invalid(path string, value any, remedy string) Problem {
	if _, ok := value.(field.OmitValueType); ok {
		return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("%s: %s", path, remedy)}
	}
	return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("%s: %s: %s", path, Quoted(value), remedy)}
}

// Errors of fields as problems: the path of each with its value and remedy.
func Errors(errs field.ErrorList) []Problem {
	ps := make([]Problem, len(errs))
	for i, err := range errs {
		ps[i] = Invalid(err.Field, err.BadValue, err.Detail)
	}
	return ps
}

var zeros = regexp.MustCompile(`([hm])(0[ms])+$`)

// Duration as people write it, without what is zero.
func Duration(d time.Duration) string { return zeros.ReplaceAllString(d.String(), "$1") }

// Settings of the platform that cannot be used, if err says so.
func Settings(err error) []Problem {
	if err == nil {
		return nil
	}
	return []Problem{{v1alpha1.ReasonInvalidSettings, fmt.Sprintf("platform settings: %v", err)}}
}

// Quoted value as people wrote it, as far as it matters: text in quotes, at most 60 characters.
func Quoted(value any) string {
	text := []rune(fmt.Sprint(value))
	if len(text) > 60 {
		text = append(text[:59], '…')
	}
	if _, ok := value.(string); ok {
		return fmt.Sprintf("%q", string(text))
	}
	return string(text)
}

// Because makes a remedy of what a validator of Kubernetes says.
func Because(errs []string) string { return strings.Join(errs, ", and ") }
