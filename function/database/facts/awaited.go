// SPDX-License-Identifier: Apache-2.0

package facts

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Awaited is what there cannot be members without.
type Awaited struct {
	Reason  xpv2.ConditionReason
	Message string
}
