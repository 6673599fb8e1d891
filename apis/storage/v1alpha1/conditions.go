// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Bucket, beside those that every managed resource has.
const (
	// TypeFeaturesSupported tells whether the server implements every feature that
	// the spec asks for.
	TypeFeaturesSupported xpv2.ConditionType = "FeaturesSupported"
)

// Reasons of the condition FeaturesSupported.
const (
	// ReasonSupported: the server implements all of them.
	ReasonSupported xpv2.ConditionReason = "Supported"
	// ReasonNotImplemented: the server does not implement the features that the
	// message names. All others are set.
	ReasonNotImplemented xpv2.ConditionReason = "NotImplemented"
)
