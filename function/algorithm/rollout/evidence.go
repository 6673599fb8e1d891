// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// CheckDrift is the name of the check that compares the distributions of candidate and baseline.
const CheckDrift = "drift"

// How many looks make evidence. A single one may be chance, and traffic at a border would turn it with each look.
const (
	passesNeeded  = 3
	failuresInRow = 2
	failuresOf    = 3
	failuresAmong = 5
)

// silentIntervals is after how many intervals without a look the state of the candidate is unknown; as many looks in a row
// without an answer mean the same.
const (
	silentIntervals = 4
	errorsInRow     = 3
)

// ProviderMissing is what to do where no Analysis can exist.
const ProviderMissing = "provider-capstan asks Prometheus, and is not installed: install the package capstan"

// Evidence about a candidate is what was gathered since its weight is in force.
type Evidence struct {
	// Asked reports whether the candidate has any check to meet.
	Asked bool

	// LookedAt is the time of the last look, and Errors the number of looks in a row without an answer.
	LookedAt time.Time
	Errors   int64

	Checks []v1alpha1.EvidenceStatus

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
	return slices.ContainsFunc(e.Checks, func(c v1alpha1.EvidenceStatus) bool { return strings.ContainsAny(c.Verdicts, "PFI") })
}

// failing is the first check that fails, or nil.
func (e Evidence) failing() *v1alpha1.EvidenceStatus {
	for i := range e.Checks {
		v := e.Checks[i].Verdicts
		latest := v[max(len(v)-failuresAmong, 0):]
		if slices.Contains(e.Waived, e.Checks[i].Name) {
			continue
		}
		if strings.HasSuffix(v, strings.Repeat("F", failuresInRow)) || strings.Count(latest, "F") >= failuresOf {
			return &e.Checks[i]
		}
	}
	return nil
}

// passing reports whether every check passes that says something.
func (e Evidence) passing() bool {
	return len(e.Checks) > len(e.Waived) && !slices.ContainsFunc(e.Checks, func(c v1alpha1.EvidenceStatus) bool {
		return !slices.Contains(e.Waived, c.Name) && !strings.HasSuffix(c.Verdicts, strings.Repeat("P", passesNeeded))
	})
}

// unsettled guardrails, by name: an experiment does not end by its metric before they show whether arm B does harm. A person who
// adopts it needs to know that it passes them. Where A is better no person adopts B, and requests do not stay in the worse arm
// for it: as many looks are enough as would have shown a violation.
func (e Evidence) unsettled(winner v1alpha1.ExperimentWinner) []string {
	var open []string
	for _, c := range e.Checks {
		settled := strings.HasSuffix(c.Verdicts, strings.Repeat("P", passesNeeded))
		if answered := strings.ReplaceAll(c.Verdicts, "E", ""); winner == v1alpha1.WinnerA {
			settled = len(answered) >= passesNeeded && !strings.HasSuffix(answered, "F")
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
func inWords(c *v1alpha1.EvidenceStatus) string {
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
		words += ", asked " + c.Asked
	}
	if c.Message != "" {
		words += ": " + c.Message
	}
	return words
}
