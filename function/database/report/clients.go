// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// poolersReady reports whether poolers accept clients.
func poolersReady(s *decision.Pass) xpv2.Condition {
	if !s.Pooled() {
		return xpv2.Condition{}
	}
	o := s.Observed[names.Pooler]
	there, wanted := int64(0), int64(*s.Spec.Pooler.Replicas)
	if o != nil {
		there = compose.Number(o.Map(), 0, "status", "readyReplicas")
	}
	switch {
	case s.Asleep():
		return no(v1alpha1.ReasonPoolersPending, "poolers are stopped together with the members")
	case there == 0 && !s.Leads():
		return no(v1alpha1.ReasonPoolersPending, "poolers accept clients when there is a leader: see the condition Available")
	case there == 0:
		return no(v1alpha1.ReasonPoolersPending, fmt.Sprintf(
			"no pooler accepts clients: if this takes minutes, run kubectl describe pods -n %s -l %s=%s", s.Namespace, names.LabelPooler, s.Name))
	case there < wanted:
		return yes(v1alpha1.ReasonPoolersMissing, fmt.Sprintf(
			"a pooler accepts clients, but others are missing: if this takes minutes, run kubectl describe pods -n %s -l %s=%s", s.Namespace, names.LabelPooler, s.Name))
	default:
		return yes(v1alpha1.ReasonPooling, "every pooler accepts clients")
	}
}

func poolerEndpoint(s *facts.Cluster) string {
	if !s.Pooled() || s.Observed[names.PoolerService] == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.Host(names.SuffixPooler), s.Traits.Ports.Client)
}

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
