// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strings"

// How many evaluations decide. A single one may be chance, and a value near its bound would change the decision with each
// of them.
const (
	// PassesNeeded in a row, of every check.
	PassesNeeded = 3
	// FailuresInRow of one check are enough, and so are FailuresOf among its last FailuresAmong evaluations.
	FailuresInRow = 2
	FailuresOf    = 3
	FailuresAmong = 5
	// ErrorsInRow are queries without an answer after which the state of a candidate is unknown.
	ErrorsInRow = 3
)

// A Standing is all that decisions take from the verdicts of a check. The function decides by nothing else, and the
// provider reports evidence when a standing changes. So a report that is not written hides no decision.
//
// +kubebuilder:object:generate=false
type Standing struct {
	// Latest is the letter of the latest verdict.
	Latest string

	// Passing and Failing report whether the check passes or fails the candidate.
	Passing, Failing bool

	// Shared reports whether the latest evaluation with an answer found a fault that both revisions have.
	Shared bool

	// Harmless reports whether as many evaluations as would have shown a violation have been answered, and the latest
	// of them is no failure.
	Harmless bool
}

// Deciding is the part of a standing that ends the step of a candidate: a single pass does not.
func (s Standing) Deciding() Standing {
	if s.Harmless = false; s.Latest == string(VerdictPass[:1]) {
		s.Latest = ""
	}
	return s
}

// StandingOf verdicts. The last letter is the latest one.
func StandingOf(verdicts string) Standing {
	answered, recent := strings.ReplaceAll(verdicts, "E", ""), verdicts[max(len(verdicts)-FailuresAmong, 0):]
	return Standing{
		Latest:   verdicts[max(len(verdicts)-1, 0):],
		Passing:  strings.HasSuffix(verdicts, strings.Repeat("P", PassesNeeded)),
		Failing:  strings.HasSuffix(verdicts, strings.Repeat("F", FailuresInRow)) || strings.Count(recent, "F") >= FailuresOf,
		Shared:   strings.HasSuffix(answered, "S"),
		Harmless: len(answered) >= PassesNeeded && !strings.HasSuffix(answered, "F"),
	}
}
