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
	"github.com/capstan-dev/capstan/function/database/pooler"
)

// poolersReady reports whether poolers accept clients.
func poolersReady(s *decision.Pass) xpv2.Condition {
	if !s.Pooled() {
		return xpv2.Condition{}
	}
	if s.Asleep() {
		return no(v1alpha1.ReasonPoolersPending, "poolers are stopped together with the members")
	}
	wanted, missing := int64(*s.Spec.Pooler.Replicas), pooler.Set{}
	for _, p := range pooler.Sets(s.Cluster) {
		there := int64(0)
		if o := s.Observed[p.Deployment]; o != nil {
			there = compose.Number(o.Map(), 0, "status", "readyReplicas")
		}
		switch {
		case there == 0 && !s.Leads():
			return no(v1alpha1.ReasonPoolersPending, "poolers accept clients when there is a leader: see the condition Available")
		case there == 0:
			return no(v1alpha1.ReasonPoolersPending, fmt.Sprintf("no pooler of %s accepts clients: %sif this takes minutes, run kubectl describe pods -n %s -l %s",
				s.Called(p.Suffix), atFirst(p), s.Namespace, p.Selector(s.Cluster)))
		case there < wanted:
			missing = p
		}
	}
	if missing.Deployment != "" {
		return yes(v1alpha1.ReasonPoolersMissing, fmt.Sprintf("a pooler of %s accepts clients, but others are missing: if this takes minutes, run kubectl describe pods -n %s -l %s",
			s.Called(missing.Suffix), s.Namespace, missing.Selector(s.Cluster)))
	}
	return yes(v1alpha1.ReasonPooling, "every pooler accepts clients")
}

// atFirst is what a set of poolers waits for when it starts.
func atFirst(p pooler.Set) string {
	if p.Deployment == names.ReaderPooler {
		return "they need a standby that serves, see the condition HighlyAvailable; "
	}
	return ""
}

// poolerEndpoints of the poolers before the leader, and of the poolers before the standbys; "" without them.
func poolerEndpoints(s *facts.Cluster) (writers, readers string) {
	at := map[string]string{}
	for _, p := range pooler.Sets(s) {
		if s.Observed[p.In(names.PoolerService)] != nil {
			at[p.Deployment] = fmt.Sprintf("%s:%d", s.Host(p.Suffix), s.Traits.Ports.Client)
		}
	}
	return at[names.Pooler], at[names.ReaderPooler]
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
