// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"net"
	"strconv"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Assigned address of the load balancer, a name or an IP address, or nothing.
func (s *Cluster) Assigned() string {
	o := s.Observed[names.External]
	if o == nil || !s.Exposed() {
		return ""
	}
	for _, v := range compose.List(o.Map(), "status", "loadBalancer", "ingress") {
		at, _ := v.(map[string]any)
		if text := cmp.Or(compose.Text(at, "ip"), compose.Text(at, "hostname")); text != "" {
			return text
		}
	}
	return ""
}

// ExternalHost that clients outside connect to, or nothing as long as there is none.
func (s *Cluster) ExternalHost() string {
	address := s.Assigned()
	if address != "" && s.Spec.Expose.Hostname != "" {
		return s.Spec.Expose.Hostname
	}
	return address
}

// ExternalEndpoint is host and port of that.
func (s *Cluster) ExternalEndpoint() string {
	if host := s.ExternalHost(); host != "" {
		return net.JoinHostPort(host, strconv.Itoa(int(s.Traits.Ports.Client)))
	}
	return ""
}
