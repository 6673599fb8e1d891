// SPDX-License-Identifier: Apache-2.0

package report

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/names"
)

// exposedCondition reports whether clients outside have an address.
func exposedCondition(s *decision.Pass) xpv2.Condition {
	switch {
	case !s.Exposed():
		return xpv2.Condition{}
	case s.Assigned() == "":
		return no(v1alpha1.ReasonAddressPending,
			"the load balancer has no address yet: if this takes minutes, see the events of Service "+s.Called(names.SuffixExternal)+
				"; the cluster needs a load balancer controller. Clients inside the cluster do not depend on it")
	case s.Spec.Expose.Hostname != "" && s.Assigned() != s.Spec.Expose.Hostname:
		return yes(v1alpha1.ReasonAddressAssigned, "clients outside the cluster connect to "+s.ExternalEndpoint()+"; this name must resolve to "+s.Assigned())
	default:
		return yes(v1alpha1.ReasonAddressAssigned, "clients outside the cluster connect to "+s.ExternalEndpoint())
	}
}
