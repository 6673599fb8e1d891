// SPDX-License-Identifier: Apache-2.0

package network

import (
	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// External Service for clients outside the cluster, of the poolers or of the leader. It keeps the clients' addresses, so that the
// network policy can check them.
func External(d *compose.Draft, s *facts.Cluster) {
	if !s.Exposed() {
		d.Remove(names.External)
		return
	}
	selector := s.Selector()
	selector[observev1alpha1.LabelRole] = observev1alpha1.RoleLabelLeader
	if s.Pooled() {
		selector = s.PoolerSelector()
	}
	spec := applycorev1.ServiceSpec().
		WithType(corev1.ServiceTypeLoadBalancer).
		WithExternalTrafficPolicy(corev1.ServiceExternalTrafficPolicyLocal).
		WithSelector(selector).
		WithPorts(ServicePort(s.Traits.App, s.Traits.Ports.Client))
	for _, r := range s.Spec.Expose.SourceRanges {
		spec.WithLoadBalancerSourceRanges(string(r))
	}
	// Not the label of the members, whose Services are scraped.
	d.Require(names.External, applycorev1.Service(s.Called(names.SuffixExternal), s.Namespace).
		WithLabels(map[string]string{names.LabelName: s.Traits.App, names.LabelInstance: s.Name, names.LabelManagedBy: "capstan"}).
		WithSpec(spec))
}

// Outside are the peers that spec.expose admits.
func Outside(s *facts.Cluster) []*compose.Peer {
	if !s.Exposed() {
		return nil
	}
	peers := make([]*compose.Peer, 0, len(s.Spec.Expose.SourceRanges))
	for _, r := range s.Spec.Expose.SourceRanges {
		peers = append(peers, applynetworkingv1.NetworkPolicyPeer().WithIPBlock(applynetworkingv1.IPBlock().WithCIDR(string(r))))
	}
	return peers
}
