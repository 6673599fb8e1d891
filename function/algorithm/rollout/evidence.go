// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// CheckDrift is the name of the check that compares the distributions of candidate and baseline.
const CheckDrift = "drift"

// silentIntervals is after how many intervals without a look the state of the candidate is unknown, where the provider promises no
// more.
const silentIntervals = 4

// ProviderMissing is what to do where no Analysis can exist.
const ProviderMissing = "provider-capstan, which queries Prometheus, is not installed: install the package capstan"

// Evidence about a candidate is what was gathered since its weight is in force.
type Evidence struct {
	// Asked reports whether the candidate has any check to meet.
	Asked bool

	// LookedAt is the last look that was reported, LooksUntil until when the provider promises to look and to report what changes
	// a decision, and Errors the number of looks in a row without an answer.
	LookedAt, LooksUntil time.Time
	Errors               int64

	Checks []Check

	// Waived are names of checks without effect now, because their numbers are not comparable. Omitted is why a
	// check is not asked at all, or empty.
	Waived  []string
	Omitted string

	// Experiment compares the arms of one.
	Experiment observev1alpha1.ExperimentObservation
}

// A Rehearsal is what came of trying the checks of a candidate on the live revision.
type Rehearsal struct {
	// Done reports whether all of them were tried.
	Done bool

	// Missing is what cannot be measured, why, and what to do, or empty.
	Missing string
}

// known reports whether any look showed anything of the candidate, as far as looks are remembered.
func (e Evidence) known() bool {
	return slices.ContainsFunc(e.Checks, func(c Check) bool { return strings.ContainsAny(c.Verdicts, "PFSI") })
}

// A Check is the evidence of one check of the candidate.
type Check struct {
	Name string

	// Verdicts of the latest looks, the latest last.
	Verdicts string

	// Value in the unit of the check with its bounds, the value of the baseline, and the number of requests behind it.
	Value, Lower, Upper, Baseline *float64
	Samples                       *int64

	// Asked is the threshold in words, and Message why the check cannot decide, or empty.
	Asked, Message string
}

// standing is all that decisions take from the verdicts.
func (c Check) standing() observev1alpha1.Standing { return observev1alpha1.StandingOf(c.Verdicts) }

// status of a check, which changes as rarely as it can: each change has Crossplane apply every composed object once more. More
// passes than it takes are no news.
func (c Check) status() v1alpha1.EvidenceStatus {
	shown := observev1alpha1.FailuresAmong
	if c.standing().Passing {
		shown = observev1alpha1.PassesNeeded
	}
	st := v1alpha1.EvidenceStatus{Name: c.Name, Asked: c.Asked, Message: c.Message, Verdicts: c.Verdicts[max(len(c.Verdicts)-shown, 0):]}
	if c.Samples != nil {
		st.Samples = new(*c.Samples)
		if n := *c.Samples; n > 0 {
			*st.Samples = int64(math.Pow10(len(strconv.FormatInt(n, 10)) - 1))
		}
	}
	return st
}

// failing is the first check that fails, or nil.
func (e Evidence) failing() *Check {
	for i := range e.Checks {
		if c := e.Checks[i]; !slices.Contains(e.Waived, c.Name) && c.standing().Failing {
			return &e.Checks[i]
		}
	}
	return nil
}

// shared is the first check that both revisions fail, or nil. Looks without an answer show nothing new.
func (e Evidence) shared() *Check {
	for i := range e.Checks {
		if e.Checks[i].standing().Shared {
			return &e.Checks[i]
		}
	}
	return nil
}

// passing reports whether every check passes that says something.
func (e Evidence) passing() bool {
	return len(e.Checks) > len(e.Waived) && !slices.ContainsFunc(e.Checks, func(c Check) bool {
		return !slices.Contains(e.Waived, c.Name) && !c.standing().Passing
	})
}

// status of all checks, once any has a verdict.
func (e Evidence) status() []v1alpha1.EvidenceStatus {
	if !slices.ContainsFunc(e.Checks, func(c Check) bool { return c.Verdicts != "" }) {
		return nil
	}
	all := make([]v1alpha1.EvidenceStatus, 0, len(e.Checks))
	for _, c := range e.Checks {
		all = append(all, c.status())
	}
	return all
}

// unsettled guardrails, by name: an experiment does not end by its metric before they show whether arm B does harm. A person who
// adopts it needs to know that it passes them. Where A is better no person adopts B, and requests do not stay in the worse arm
// for it: as many looks are enough as would have shown a violation.
func (e Evidence) unsettled(winner v1alpha1.ExperimentWinner) []string {
	var open []string
	for _, c := range e.Checks {
		settled := c.standing().Passing
		if winner == v1alpha1.WinnerA {
			settled = c.standing().Harmless
		}
		if !settled && !slices.Contains(e.Waived, c.Name) {
			open = append(open, c.Name)
		}
	}
	return open
}

// summary of all checks.
func (e Evidence) summary() string {
	words := make([]string, 0, len(e.Checks))
	for i := range e.Checks {
		words = append(words, inWords(&e.Checks[i]))
	}
	return strings.Join(words, "; ")
}

// inWords is a check with its numbers.
func inWords(c *Check) string {
	words := c.Name
	if c.Value != nil {
		words += fmt.Sprintf(" %.4g", *c.Value)
	}
	if c.Lower != nil && c.Upper != nil {
		words += fmt.Sprintf(" (%.4g to %.4g)", *c.Lower, *c.Upper)
	}
	if c.Baseline != nil {
		words += fmt.Sprintf(" beside %.4g of the baseline", *c.Baseline)
	}
	if c.Samples != nil {
		words += fmt.Sprintf(" of %d requests", *c.Samples)
	}
	if c.Asked != "" {
		words += ", required " + c.Asked
	}
	if c.Message != "" {
		words += ": " + c.Message
	}
	return words
}
