// SPDX-License-Identifier: Apache-2.0

package podhealth

import "testing"

// TestPullRemedies looks that no fault is left without a remedy.
func TestPullRemedies(t *testing.T) {
	for fault, remedy := range SpecImage {
		if remedy == "" {
			t.Errorf("SpecImage[%d]: every fault of pulling must have a remedy", fault)
		}
	}
}
