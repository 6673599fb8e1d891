// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"
)

func TestLineage(t *testing.T) {
	a := newAdmission(t, readCRD(t, "package/provider/crds/observe.capstan.dev_lineages.yaml"))
	const ended = `startedAt: "2026-01-01T03:00:00Z", endedAt: "2026-01-01T03:20:00Z"`
	cases := map[string]struct{ reason, parameters, want string }{
		"Full": {
			reason:     "As a Pipeline asks.",
			parameters: `{job: daily, streaming: false, inputs: [{namespace: "s3://lake", name: raw/clicks}], outputs: [{namespace: a, name: b}], runs: [{name: daily-1, state: Succeeded, ` + ended + `}]}`,
		},
		"Outputs":  {reason: "A run has some of its own.", parameters: `{job: fraud, runs: [{name: fraud-r1, state: Succeeded, outputs: [{namespace: "mlflow://mlflow", name: fraud/7}], ` + ended + `}]}`},
		"OutLine":  {reason: "They are named alike.", parameters: `{job: fraud, runs: [{name: fraud-r1, state: Succeeded, outputs: [{namespace: a, name: "b\nc"}], ` + ended + `}]}`, want: "must be one line of text"},
		"OutPlace": {reason: "The same.", parameters: `{job: fraud, runs: [{name: fraud-r1, state: Succeeded, outputs: [{namespace: /etc, name: b}], ` + ended + `}]}`, want: "must be the name of a scheme"},
		"OutTwice": {reason: "The same.", parameters: `{job: fraud, runs: [{name: fraud-r1, state: Succeeded, outputs: [{namespace: a, name: b}, {namespace: a, name: b}], ` + ended + `}]}`, want: "Duplicate value"},
		"Running":  {reason: "A run that goes on has no end.", parameters: `{job: daily, runs: [{name: daily-1, state: Running, ` + ended + `}]}`, want: "endedAt is the end"},
		"Endless":  {reason: "One that has ended has one.", parameters: `{job: daily, runs: [{name: daily-1, state: Failed, startedAt: "2026-01-01T03:00:00Z"}]}`, want: "endedAt is the end"},
		"State":    {reason: "There are four.", parameters: `{job: daily, runs: [{name: daily-1, state: Paused, ` + ended + `}]}`, want: "Unsupported value"},
		"Twice":    {reason: "A dataset is named once.", parameters: `{job: daily, inputs: [{namespace: a, name: b}, {namespace: a, name: b}]}`, want: "Duplicate value"},
		"Nameless": {reason: "A dataset has a name.", parameters: `{job: daily, inputs: [{namespace: a, name: ""}]}`, want: "should be at least 1 chars long"},
		"Line":     {reason: "A name is one line.", parameters: `{job: daily, outputs: [{namespace: a, name: "b\nc"}]}`, want: "must be one line of text"},
		"Place":    {reason: "A namespace is a scheme with a place.", parameters: `{job: daily, outputs: [{namespace: "/etc", name: b}]}`, want: "must be the name of a scheme"},
		"Windows":  {reason: "Names of files have anything else.", parameters: `{job: daily, outputs: [{namespace: file, name: "C:\\Program Files\\ä*.csv"}, {namespace: "gs://b", name: "a/{day}"}]}`},
		"Job":      {reason: "A job is a Pipeline or Training.", parameters: `{job: "../other"}`, want: "must be the name of a Pipeline or Training"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, withParameters(t, "observe.capstan.dev/v1alpha1", "Lineage", tc.parameters))
			if all := strings.Join(errs, "\n"); tc.want == "" && all != "" || !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want an error with %q, got %q", tc.reason, tc.want, all)
			}
		})
	}
}
