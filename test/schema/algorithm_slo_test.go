// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"
)

// sloAccepted are Algorithms with a service level objective.
func sloAccepted() map[string]map[string]any {
	objects := map[string]map[string]any{}
	for name, text := range map[string]string{
		"ObjectiveByDefault":  `slo: {availability: 99.9}`,
		"ObjectiveWhole":      `slo: {availability: 99}`,
		"ObjectiveManyNines":  `slo: {availability: 99.9999}`,
		"ObjectiveOfLatency":  `slo: {availability: 95, latencyMs: 1}`,
		"ObjectiveShortest":   `slo: {availability: 99.9, window: 1h}`,
		"ObjectiveLongest":    `slo: {availability: 99.9, window: 2160h}`,
		"ObjectiveAllBudget":  `slo: {availability: 99.9, minBudgetPercent: 0}`,
		"ObjectiveOnlyTold":   `slo: {availability: 99.9, onExhausted: None}`,
		"ObjectiveAndMetrics": `{slo: {availability: 99.9}, metrics: {queries: {requests: "increase(n[$window])"}}}`,
	} {
		objects[name] = smallest(spec(text))
	}
	return objects
}

// sloRefused are Algorithms with mistakes in it.
func sloRefused() map[string]refused {
	const (
		budget = "must be above 0 and below 100, for instance 99.9: 100 leaves no error budget"
		window = "must be a time from 1h to 2160h, for instance 720h for 30 days"
	)
	slo := func(text string) map[string]any { return smallest(spec(`slo: {` + text + `}`)) }

	return map[string]refused{
		"ObjectiveOfNothing": {
			reason: "What is asked?",
			object: slo(`latencyMs: 50`),
			want:   []string{"spec.slo.availability: Required value"},
		},
		"ObjectiveOfAll": {
			reason: "Nothing is always there.",
			object: slo(`availability: 100`),
			want:   []string{"spec.slo.availability: Invalid value: 100: " + budget},
		},
		"ObjectiveOfNone": {
			reason: "Nothing would be asked.",
			object: slo(`availability: 0`),
			want:   []string{"spec.slo.availability: Invalid value: 0: " + budget},
		},
		"ObjectiveAtOnce": {
			reason: "Every answer takes time.",
			object: slo(`availability: 99, latencyMs: 0`),
			want:   []string{"spec.slo.latencyMs: Invalid value: 0: spec.slo.latencyMs in body should be greater than or equal to 1"},
		},
		"ObjectiveTooSlow": {
			reason: "An hour is no answer.",
			object: slo(`availability: 99, latencyMs: 3600001`),
			want:   []string{"spec.slo.latencyMs: Invalid value: 3600001: spec.slo.latencyMs in body should be less than or equal to 3600000"},
		},
		"ObjectiveInDays": {
			reason: "Times have no days.",
			object: slo(`availability: 99, window: 30d`),
			want:   []string{`spec.slo.window: Invalid value: "30d": ` + window},
		},
		"ObjectiveOfMinutes": {
			reason: "Burn rates are of an hour.",
			object: slo(`availability: 99, window: 59m`),
			want:   []string{`spec.slo.window: Invalid value: "59m": ` + window},
		},
		"ObjectiveOfAYear": {
			reason: "Nobody keeps that much.",
			object: slo(`availability: 99, window: 2161h`),
			want:   []string{`spec.slo.window: Invalid value: "2161h": ` + window},
		},
		"BudgetUntouched": {
			reason: "No rollout could ever begin.",
			object: slo(`availability: 99, minBudgetPercent: 100`),
			want:   []string{"spec.slo.minBudgetPercent: Invalid value: 100: spec.slo.minBudgetPercent in body should be less than or equal to 99"},
		},
		"BudgetBelowNothing": {
			reason: "There is nothing below nothing.",
			object: slo(`availability: 99, minBudgetPercent: -1`),
			want:   []string{"spec.slo.minBudgetPercent: Invalid value: -1: spec.slo.minBudgetPercent in body should be greater than or equal to 0"},
		},
		"UnknownExhaustion": {
			reason: "The choices are named.",
			object: slo(`availability: 99, onExhausted: Stop`),
			want:   []string{`spec.slo.onExhausted: Unsupported value: "Stop": supported values: "FreezeRollouts", "None"`},
		},
	}
}

func TestAnalysisOfObjective(t *testing.T) {
	a := newAdmission(t, readCRD(t, analysisCRD))
	for name, tc := range map[string]struct {
		reason, slo, want string
	}{
		"Smallest":  {"An availability is enough.", `availability: 99.9`, ""},
		"Whole":     {"So is everything.", `availability: 99.9, latencyMs: 250, window: 2160h`, ""},
		"Missing":   {"Without it there is no budget.", `window: 1h`, "availability: Required value"},
		"All":       {"Nor is there of all.", `availability: 100`, "must be above 0 and below 100"},
		"TooShort":  {"Burn rates are of an hour.", `availability: 99, window: 59m`, "must be from 1h to 2160h"},
		"TooLong":   {"Nobody keeps that much.", `availability: 99, window: 2161h`, "must be from 1h to 2160h"},
		"AtOnce":    {"Every answer takes time.", `availability: 99, latencyMs: 0`, "greater than or equal to 1"},
		"TooSlowly": {"An hour is no answer.", `availability: 99, latencyMs: 3600001`, "less than or equal to 3600000"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, analysis(t, `metrics: {slots: [a], slo: {`+tc.slo+`}}`))
			if all := strings.Join(errs, "\n"); (all == "") != (tc.want == "") || !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want an error with %q, got %q", tc.reason, tc.want, all)
			}
		})
	}
}
