// SPDX-License-Identifier: Apache-2.0

package database

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// providerName is the label of the provider's pods.
const providerName = "provider-capstan"

// networkPolicy lets clients, members and the provider reach the server, members and the provider the port of coordination, what
// scrapes metrics the exporter, and nobody else reach anything. Probes come from the node and need no rule. What members may call
// stays open: the API server has no address that a policy could name.
func networkPolicy(d *compose.Draft, s *cluster) {
	members := applynetworkingv1.NetworkPolicyPeer().WithPodSelector(s.everyMember())
	provider := applynetworkingv1.NetworkPolicyPeer().
		WithNamespaceSelector(compose.Namespace(s.Settings.Database.CrossplaneNamespace)).
		WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{labelName: providerName}))
	rules := []*compose.IngressRule{
		ingress(s.traits.Ports.Client, s.direct(members, provider)...),
		ingress(s.traits.Ports.Coordination, members, provider),
	}
	rules = append(rules, s.backupPeers()...)
	if ns := s.Settings.Database.MetricsNamespaces; s.exports() && len(ns) > 0 {
		rules = append(rules, ingress(s.traits.Ports.Metrics, compose.PodsOf(ns)...))
	}
	d.Require(nameNetworkPolicy, applynetworkingv1.NetworkPolicy(s.called(suffixOfMembers), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(s.everyMember()).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(rules...)))
}

// direct peers of the server: those given, clients, poolers, and whom spec.expose lets in unless they come by the poolers.
func (s *cluster) direct(peers ...*compose.Peer) []*compose.Peer {
	peers = slices.Concat(peers, s.clients(), s.poolerPeers(), s.hookPeers())
	if !s.pooled() {
		peers = append(peers, s.outside()...)
	}
	return peers
}

// ingress lets peers reach a port. Without any it lets everybody.
func ingress(port int32, peers ...*compose.Peer) *compose.IngressRule {
	return compose.Ingress(intstr.FromInt32(port), peers...)
}

// clients that spec.network lets in: by default every pod of the namespace.
func (s *cluster) clients() []*compose.Peer {
	from := []v1alpha1.DatabaseClient{{}}
	if s.spec.Network != nil {
		from = s.spec.Network.From
	}
	peers := make([]*compose.Peer, 0, len(from))
	for _, c := range from {
		peers = append(peers, client(c))
	}
	return peers
}

func client(c v1alpha1.DatabaseClient) *compose.Peer {
	if c.CIDR != "" {
		return applynetworkingv1.NetworkPolicyPeer().WithIPBlock(applynetworkingv1.IPBlock().WithCIDR(c.CIDR))
	}
	return compose.NewPeer(c.Namespace, c.PodLabels)
}
