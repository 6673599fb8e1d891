// SPDX-License-Identifier: Apache-2.0

package jobpod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// TestWait shows what is taken from the Workload of a Job.
func TestWait(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, workload string
		want             *Waiting
	}{
		"None": {"Kueue has made none yet", "", nil},
		"New":  {"Kueue has not looked at it yet", "{metadata: {name: w}}", &Waiting{Workload: "w"}},
		"Pending": {
			"the cause is in the words of Kueue, as part of a sentence", `{metadata: {name: w}, status: {conditions: [
				{type: QuotaReserved, status: "False", reason: Pending, message: "insufficient unused quota. "}]}}`,
			&Waiting{Workload: "w", Cause: "insufficient unused quota"},
		},
		"Misconfigured": {
			"by its newer reason", `{metadata: {name: w}, status: {conditions: [
				{type: QuotaReserved, status: "False", reason: Misconfigured, message: "LocalQueue a doesn't exist"}]}}`,
			&Waiting{Workload: "w", Cause: "LocalQueue a doesn't exist", Misconfigured: true},
		},
		"AdmittedAgain": {
			"what was evicted once and is admitted now does not wait", `{metadata: {name: w}, status: {conditions: [
				{type: Evicted, status: "False", reason: QuotaReserved, message: "Previously: Preempted"},
				{type: QuotaReserved, status: "True", reason: QuotaReserved, message: "Quota reserved"}]}}`,
			&Waiting{Workload: "w"},
		},
		"Long": {
			"a message can name each flavor of a queue", `{metadata: {name: w}, status: {conditions: [
				{type: QuotaReserved, status: "False", reason: Pending, message: "` + strings.Repeat("é", 300) + `"}]}}`,
			&Waiting{Workload: "w", Cause: strings.Repeat("é", 254) + "…"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var o compose.Object
			if tc.workload != "" {
				o = composetest.Object(composetest.Parse(t, tc.workload))
			}
			if diff := cmp.Diff(tc.want, Wait(o)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
