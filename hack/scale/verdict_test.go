// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVerdicts(t *testing.T) {
	r := Report{CoreMemory: 1024, Phases: []Phase{
		{Name: calm, P50: 1, P99: 2},
		{Name: beside, P50: 1.05, P99: 2.3},
		{
			Name: "core, function and provider restarted, until quiet", Ended: []string{core, function, provider},
			Use: map[string]Usage{core: {Peak: 300, Starts: 1}, function: {Peak: 90, Starts: 1}, provider: {Peak: 80, Starts: 1, Queue: 50, Left: 4}},
		},
	}}
	want := []string{
		"Edits beside the noisy tenant take 1.05 times as long at p50, and 1.15 at p99; goal: at most 1.1. Not met.",
		"Most memory of core: 300 MiB of a limit of 1024; started again by itself: 0 times. Met.",
		"Most memory of function: 90 MiB of a limit of 256; started again by itself: 0 times. Met.",
		"Most memory of provider: 80 MiB of a limit of 256; started again by itself: 0 times. Met.",
		`Left in queues after phases that end quiet: 4 of provider after "core, function and provider restarted, until quiet". Not met.`,
	}
	if diff := cmp.Diff(want, r.verdicts()); diff != "" {
		t.Errorf("what was not measured has no verdict, and what was ended on purpose did not end by itself; -want, +got:\n%s", diff)
	}
}
