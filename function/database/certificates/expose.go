// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"net/netip"

	"github.com/capstan-dev/capstan/function/database/facts"
)

// WithExternalNames is a certificate that is for what clients outside connect to as well.
func WithExternalNames(s *facts.Cluster, c Spec) Spec {
	if !s.Exposed() {
		return c
	}
	if name := s.Spec.Expose.Hostname; name != "" {
		c.DNSNames = append(c.DNSNames, name)
	}
	address := s.Assigned()
	if address == "" || address == s.Spec.Expose.Hostname {
		return c
	}
	if _, err := netip.ParseAddr(address); err == nil {
		c.IPAddresses = append(c.IPAddresses, address)
	} else {
		c.DNSNames = append(c.DNSNames, address)
	}
	return c
}
