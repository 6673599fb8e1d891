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
		"ObjectiveByDefault":  `{objectives: {successRatio: 0.999}, slo: {}}`,
		"ObjectiveWhole":      `{objectives: {successRatio: 0.99}, slo: {}}`,
		"ObjectiveManyNines":  `{objectives: {successRatio: 0.999999}, slo: {}}`,
		"ObjectiveOfLatency":  `{objectives: {successRatio: 0.95}, slo: {failedAfterMs: 1}}`,
		"ObjectiveShortest":   `{objectives: {successRatio: 0.999}, slo: {window: 1h}}`,
		"ObjectiveLongest":    `{objectives: {successRatio: 0.999}, slo: {window: 2160h}}`,
		"ObjectiveAllBudget":  `{objectives: {successRatio: 0.999}, slo: {freezeRolloutsAtPercent: 0}}`,
		"ObjectiveOnlyTold":   `{objectives: {successRatio: 0.999}, slo: {freezeRolloutsAtPercent: -1}}`,
		"FirstTokenOnly":      `objectives: {timeToFirstTokenMs: 500}`,
		"TokensOnly":          `objectives: {timePerOutputTokenMs: 50, latencyPercentile: 99}`,
		"ObjectiveAndMetrics": `{objectives: {successRatio: 0.999}, slo: {}, metrics: {queries: [{name: requests, query: "increase(n[$window])"}]}}`,
	} {
		objects[name] = smallest(spec(text))
	}
	return objects
}

// sloRefused are Algorithms with mistakes in it.
func sloRefused() map[string]refused {
	const window = "must be a time from 1h to 2160h, for instance 720h for 30 days"
	slo := func(text string) map[string]any {
		return smallest(spec(`{objectives: {successRatio: 0.99}, slo: {` + text + `}}`))
	}

	return map[string]refused{
		"ObjectiveOfNothing": {
			reason: "Of which share would the rest be the budget?",
			object: smallest(spec(`slo: {}`)),
			want:   []string{"spec.slo: Invalid value: needs objectives.successRatio, the share of requests that must succeed: the error budget is the rest of it"},
		},
		"ObjectiveSooner": {
			reason: "What is in time cannot be late.",
			object: smallest(spec(`{objectives: {successRatio: 0.99, latencyMs: 50}, slo: {failedAfterMs: 49}}`)),
			want: []string{"spec.slo.failedAfterMs: Invalid value: must not be less than objectives.latencyMs: " +
				"no request can be late for the error budget that is still in time for the objective"},
		},
		"FirstTokenAtOnce": {
			reason: "Every token takes time.",
			object: smallest(spec(`objectives: {timeToFirstTokenMs: 0}`)),
			want:   []string{"spec.objectives.timeToFirstTokenMs: Invalid value: 0: spec.objectives.timeToFirstTokenMs in body should be greater than or equal to 1"},
		},
		"ObjectiveAtOnce": {
			reason: "Every answer takes time.",
			object: slo(`failedAfterMs: 0`),
			want:   []string{"spec.slo.failedAfterMs: Invalid value: 0: spec.slo.failedAfterMs in body should be greater than or equal to 1"},
		},
		"ObjectiveTooSlow": {
			reason: "An hour is no answer.",
			object: slo(`failedAfterMs: 3600001`),
			want:   []string{"spec.slo.failedAfterMs: Invalid value: 3600001: spec.slo.failedAfterMs in body should be less than or equal to 3600000"},
		},
		"ObjectiveInDays": {
			reason: "Times have no days.",
			object: slo(`window: 30d`),
			want:   []string{`spec.slo.window: Invalid value: "30d": ` + window},
		},
		"ObjectiveOfMinutes": {
			reason: "Burn rates are of an hour.",
			object: slo(`window: 59m`),
			want:   []string{`spec.slo.window: Invalid value: "59m": ` + window},
		},
		"ObjectiveOfAYear": {
			reason: "Nobody keeps that much.",
			object: slo(`window: 2161h`),
			want:   []string{`spec.slo.window: Invalid value: "2161h": ` + window},
		},
		"BudgetUntouched": {
			reason: "No rollout could ever begin.",
			object: slo(`freezeRolloutsAtPercent: 100`),
			want:   []string{"spec.slo.freezeRolloutsAtPercent: Invalid value: 100: spec.slo.freezeRolloutsAtPercent in body should be less than or equal to 99"},
		},
		"BudgetBelowNothing": {
			reason: "There is nothing below nothing.",
			object: slo(`freezeRolloutsAtPercent: -2`),
			want:   []string{"spec.slo.freezeRolloutsAtPercent: Invalid value: -2: spec.slo.freezeRolloutsAtPercent in body should be greater than or equal to -1"},
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
