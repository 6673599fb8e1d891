// SPDX-License-Identifier: Apache-2.0

package pods

import "testing"

func TestCopying(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		list   []Pod
		want   string
	}{
		"Nobody":   {"Others follow.", []Pod{{Name: "a-0", Member: "a", Started: true}}, ""},
		"Another":  {"It is copied now.", []Pod{{Name: "a-0", Member: "a", Started: true}, {Name: "c-0", Member: "c", Started: true, Copied: true}}, "c"},
		"Itself":   {"It does not wait for itself.", []Pod{{Name: "b-0", Member: "b", Started: true, Copied: true}}, ""},
		"Stopping": {"A pod that ends copies nothing more.", []Pod{{Name: "c-0", Member: "c", Started: true, Copied: true, Stopping: true}}, ""},
		"Ended":    {"A pod that does not run copies nothing.", []Pod{{Name: "c-0", Member: "c", Copied: true}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Copying(tc.list, "b-0"); got != tc.want {
				t.Errorf("%s\nCopying(): got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
