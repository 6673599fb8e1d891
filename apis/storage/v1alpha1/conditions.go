// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Bucket, beside the conditions of every managed resource.
const (
	// TypeFeaturesSupported: True when the server implements every feature of the spec.
	TypeFeaturesSupported xpv2.ConditionType = "FeaturesSupported"
)

// Reasons of the condition FeaturesSupported.
const (
	// ReasonSupported: the server implements every feature of the spec. Nothing to do.
	ReasonSupported xpv2.ConditionReason = "Supported"
	// ReasonNotImplemented: the server does not implement the features that the message names; all others are set.
	// Remove them from the spec.
	ReasonNotImplemented xpv2.ConditionReason = "NotImplemented"
)
