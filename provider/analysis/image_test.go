// SPDX-License-Identifier: Apache-2.0

package analysis

import "testing"

// TestPullRemedies looks that no fault is left without a remedy.
func TestPullRemedies(t *testing.T) {
	for fault, remedy := range images {
		if remedy == "" {
			t.Errorf("images[%d]: every fault of pulling must have a remedy", fault)
		}
	}
}
