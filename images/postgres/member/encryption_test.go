// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMounted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		entries []string
		want    bool
	}{
		"NoSecret":    {"The kubelet mounts an optional Secret that is not there as its own entries alone.", []string{"..2026_11_22_21_24_01.1234567890", "..data"}, false},
		"EmptyFolder": {"Nothing is mounted.", nil, false},
		"Secret":      {"The keys are there.", []string{"..2026_11_22_21_24_01.1234567890", "..data", "tls.crt"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, e := range tc.entries {
				if err := os.WriteFile(filepath.Join(dir, e), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := mounted(dir); got != tc.want {
				t.Errorf("%s\nmounted: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
	if mounted(filepath.Join(t.TempDir(), "none")) {
		t.Error("A folder that is not there has no Secret.")
	}
}
