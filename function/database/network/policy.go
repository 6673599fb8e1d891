// SPDX-License-Identifier: Apache-2.0

// Package network composes how a Database is reached: Services, policies, and the budget of its disruptions.
package network

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// providerName is the label of the provider's pods.
const providerName = "provider-capstan"

// Policy lets clients, members and the provider reach the server, members and the provider the port of coordination, Prometheus
// the exporter, and no other pod anything. Probes come from the node and need no rule. Requests of members are not restricted:
// the API server has no address that a policy could name.
func Policy(d *compose.Draft, s *facts.Cluster) {
	members := Members(s)
	provider := applynetworkingv1.NetworkPolicyPeer().
		WithNamespaceSelector(compose.Namespace(s.Settings.Database.CrossplaneNamespace)).
		WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{names.LabelName: providerName}))
	rules := []*compose.IngressRule{
		Ingress(s.Traits.Ports.Client, direct(s, members, provider)...),
		Ingress(s.Traits.Ports.Coordination, members, provider),
	}
	rules = append(rules, backupPeers(s)...)
	if ns := s.Settings.Database.MetricsNamespaces; s.Exports() && len(ns) > 0 {
		rules = append(rules, Ingress(s.Traits.Ports.Metrics, compose.PodsOf(ns)...))
	}
	d.Require(names.NetworkPolicy, applynetworkingv1.NetworkPolicy(s.Called(names.SuffixOfMembers), s.Namespace).
		WithLabels(s.Labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(s.EveryMember()).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(rules...)))
}

// direct peers of the server: the given ones, clients, poolers, hooks, and without poolers also the peers of spec.expose.
func direct(s *facts.Cluster, peers ...*compose.Peer) []*compose.Peer {
	peers = slices.Concat(peers, Clients(s), poolerPeers(s), HookPeers(s))
	if !s.Pooled() {
		peers = append(peers, Outside(s)...)
	}
	return peers
}

// Clients that spec.network admits: by default every pod of the namespace.
func Clients(s *facts.Cluster) []*compose.Peer {
	from := []v1alpha1.DatabaseClient{{}}
	if s.Spec.Network != nil {
		from = s.Spec.Network.From
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
