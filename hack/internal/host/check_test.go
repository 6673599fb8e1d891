// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAvailableMemory(t *testing.T) {
	cases := map[string]struct {
		reason  string
		meminfo string
		want    float64
		err     error
	}{
		"Usual": {
			reason:  "What can be had without swapping counts, not what is free.",
			meminfo: "MemTotal:       24684092 kB\nMemFree:         1000 kB\nMemAvailable:    3145728 kB\n",
			want:    3,
		},
		"Missing": {reason: "Not knowing is no reason to go on.", meminfo: "MemTotal: 1 kB\n", err: cmpopts.AnyError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := availableMemory([]byte(tc.meminfo))
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\n-want error, +got error:\n%s", tc.reason, diff)
			}
			if got != tc.want {
				t.Errorf("%s\nwant %g, got %g", tc.reason, tc.want, got)
			}
		})
	}
}
