// SPDX-License-Identifier: Apache-2.0

// Package check is what the checks of specs have in common: what a problem is, how
// it is worded, and how problems are told.
package check

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A Problem keeps a spec from being carried out. Its message names field, value
// and remedy.
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

// maxProblems that one message tells. Who corrects those sees the rest.
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

// Invalid value of a field.
func Invalid(field string, value any, remedy string) Problem {
	return Problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("%s: %s: %s", field, Quoted(value), remedy)}
}

// Settings of the platform that cannot be used, if err says so.
func Settings(err error) []Problem {
	if err == nil {
		return nil
	}

	return []Problem{{v1alpha1.ReasonInvalidSettings, fmt.Sprintf("platform settings: %v", err)}}
}

// Quoted value as people wrote it, as far as it matters: text in quotes, at most 60
// characters.
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

// Between tells whether a number is out of bounds.
func Between(field string, value, least, most int32) []Problem {
	if value < least || value > most {
		return []Problem{Invalid(field, value, fmt.Sprintf("must be from %d to %d", least, most))}
	}

	return nil
}

// Among tells whether a text is none of those that a field may be.
func Among[T ~string](field string, value T, of ...T) []Problem {
	if slices.Contains(of, value) {
		return nil
	}

	words := make([]string, 0, len(of))
	for _, w := range of {
		words = append(words, string(w))
	}

	last := len(words) - 1

	return []Problem{Invalid(field, string(value), "must be "+strings.Join(words[:last], ", ")+" or "+words[last])}
}

// Shaped tells whether a text has not the shape that it must have. An empty one
// passes: it is not set.
func Shaped(field, value string, shape *regexp.Regexp, remedy string) []Problem {
	if value == "" || shape.MatchString(value) {
		return nil
	}

	return []Problem{Invalid(field, value, remedy)}
}

// ObjectName tells whether a text cannot be the name of an object.
func ObjectName(field, name string) []Problem {
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
		return []Problem{Invalid(field, name, Because(errs))}
	}

	return nil
}

// Because makes a remedy of what a validator of Kubernetes says.
func Because(errs []string) string { return strings.Join(errs, ", and ") }

// Decode a spec. The schema keeps almost everything out that would not decode.
func Decode(spec map[string]any, into any) []Problem {
	raw, err := json.Marshal(spec)
	if err == nil {
		err = kjson.Unmarshal(raw, into)
	}

	if err != nil {
		return []Problem{{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec: cannot be read: %v: correct the type of that field", err)}}
	}

	return nil
}
