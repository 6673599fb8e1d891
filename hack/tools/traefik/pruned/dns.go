// SPDX-License-Identifier: Apache-2.0

// Package dns takes the place of lego's package of that name, which links the SDKs of all DNS providers.
package dns

import (
	"fmt"

	"github.com/go-acme/lego/v4/challenge"
)

// NewDNSChallengeProviderByName returns an error, because this build has no DNS provider.
func NewDNSChallengeProviderByName(name string) (challenge.Provider, error) {
	return nil, fmt.Errorf("cannot find DNS provider %q: this build has none", name)
}
