// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFailedTests(t *testing.T) {
	long := "--- FAIL: TestPage (3.00s)\n" + strings.Repeat("    page_test.go:7: line\n", 2*firstSaid)
	for _, tc := range []struct {
		reason, output string
		want           []string
	}{
		{"Nothing failed.", "ok  \tpkg/a\t1.0s\n?   \tpkg/b\t[no test files]\n", nil},
		{
			"Of tests that failed, among packages that passed, the messages are kept.",
			"ok  \tpkg/a\t1.0s\n--- FAIL: TestOne (0.10s)\n    one_test.go:3: want 1\n        got 2\n--- FAIL: TestTwo (0.20s)\n    --- FAIL: TestTwo/case (0.10s)\n        two_test.go:9: no\nFAIL\tpkg/b\t0.3s\nok  \tpkg/c\t1.0s\nFAIL\n",
			[]string{
				"TestOne: --- FAIL: TestOne (0.10s)", "TestOne:     one_test.go:3: want 1", "TestOne:         got 2",
				"TestTwo: --- FAIL: TestTwo (0.20s)",
				"TestTwo/case:     --- FAIL: TestTwo/case (0.10s)", "TestTwo/case:         two_test.go:9: no",
			},
		},
		{
			"A program that takes too long names its test in the panic.",
			"panic: test timed out after 1s\n\trunning tests:\n\t\tTestSlow (1s)\nFAIL\tpkg/a\t1.0s\nFAIL\n",
			[]string{"panic:" + " panic: test timed out after 1s", "panic: \trunning tests:", "panic: \t\tTestSlow (1s)"},
		},
		{"A test that says much keeps its first lines.", long, strings.Split("TestPage: "+strings.ReplaceAll(
			strings.Join(strings.Split(long, "\n")[:firstSaid], "\n"), "\n", "\nTestPage: "), "\n")},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var got []string
			names, texts := failedTests(tc.output)
			for _, name := range names {
				for _, line := range texts[name] {
					got = append(got, name+": "+line)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
