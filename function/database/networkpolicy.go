// SPDX-License-Identifier: Apache-2.0

package database

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/postgres"
)

// everybody stands for every namespace.
const everybody = "*"

// providerName is the label of the provider's pods.
const providerName = "provider-capstan"

type (
	rule = applynetworkingv1.NetworkPolicyIngressRuleApplyConfiguration
	peer = applynetworkingv1.NetworkPolicyPeerApplyConfiguration
)

// networkPolicy lets clients, members and the provider reach the server, members
// and the provider Patroni, what scrapes metrics the exporter, and nobody else
// reach anything. Probes come from the node and need no rule. What members may call
// stays open: the API server has no address that a policy could name.
func networkPolicy(s *state) error {
	members := applynetworkingv1.NetworkPolicyPeer().WithPodSelector(s.everyMember())
	provider := applynetworkingv1.NetworkPolicyPeer().
		WithNamespaceSelector(theNamespace(s.Settings.Database.CrossplaneNamespace)).
		WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{labelName: providerName}))

	rules := []*rule{
		ingress(postgres.PortPostgres, s.direct(members, provider)...),
		ingress(postgres.PortPatroni, members, provider),
	}

	rules = append(rules, s.backupPeers()...)

	if ns := s.Settings.Database.MetricsNamespaces; s.exports() && len(ns) > 0 {
		rules = append(rules, ingress(postgres.PortMetrics, podsOf(ns)...))
	}

	s.ask(nameNetworkPolicy, applynetworkingv1.NetworkPolicy(s.called(suffixOfMembers), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(s.everyMember()).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(rules...)))

	return nil
}

// direct peers of the server: those given, clients, poolers, and whom spec.expose
// lets in unless they come by the poolers.
func (s *state) direct(peers ...*peer) []*peer {
	peers = slices.Concat(peers, s.clients(), s.poolerPeers(), s.hookPeers())
	if !s.pooled() {
		peers = append(peers, s.outside()...)
	}

	return peers
}

// ingress lets peers reach a port. Without any it lets everybody.
func ingress(port int32, peers ...*peer) *rule {
	return applynetworkingv1.NetworkPolicyIngressRule().
		WithFrom(peers...).
		WithPorts(applynetworkingv1.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(port)))
}

// clients that spec.network lets in: by default every pod of the namespace.
func (s *state) clients() []*peer {
	from := []v1alpha1.DatabaseClient{{}}
	if s.spec.Network != nil {
		from = s.spec.Network.From
	}

	peers := make([]*peer, 0, len(from))
	for _, c := range from {
		peers = append(peers, client(c))
	}

	return peers
}

func client(c v1alpha1.DatabaseClient) *peer {
	p := applynetworkingv1.NetworkPolicyPeer()

	if c.CIDR != "" {
		return p.WithIPBlock(applynetworkingv1.IPBlock().WithCIDR(c.CIDR))
	}

	switch c.Namespace {
	case "":
		// A peer without any selector would be none.
		p.WithPodSelector(applymetav1.LabelSelector())
	case everybody:
		p.WithNamespaceSelector(applymetav1.LabelSelector())
	default:
		p.WithNamespaceSelector(theNamespace(c.Namespace))
	}

	if len(c.PodLabels) > 0 {
		labels := make(map[string]string, len(c.PodLabels))
		for k, v := range c.PodLabels {
			labels[k] = string(v)
		}

		p.WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(labels))
	}

	return p
}

// podsOf namespaces, or no peers at all, which is everybody.
func podsOf(namespaces []string) []*peer {
	peers := make([]*peer, 0, len(namespaces))

	for _, ns := range namespaces {
		if ns == everybody {
			return nil
		}

		peers = append(peers, applynetworkingv1.NetworkPolicyPeer().WithNamespaceSelector(theNamespace(ns)))
	}

	return peers
}

// theNamespace selects a namespace by its name, in the label that Kubernetes sets.
func theNamespace(namespace string) *applymetav1.LabelSelectorApplyConfiguration {
	return applymetav1.LabelSelector().WithMatchLabels(map[string]string{corev1.LabelMetadataName: namespace})
}
