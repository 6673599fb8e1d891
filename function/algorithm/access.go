// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// everybody stands for every namespace in the spec, and in settings also for what
// is outside the cluster.
const everybody = "*"

// gatewayNamespaces are those whose pods serve the Gateway of the route.
func (s *state) gatewayNamespaces() []string {
	switch g := s.gateway(); {
	case g.Name == "":
		return nil
	case len(s.Settings.Algorithm.GatewayNamespaces) > 0:
		return s.Settings.Algorithm.GatewayNamespaces
	default:
		return []string{g.Namespace}
	}
}

// ingress of the pods: the callers, what serves the Gateway, what scrapes metrics.
// The port of metrics goes by its number: it is no part of a revision, and so the
// pods have no name for it.
func ingress(s *state) []*applynetworkingv1.NetworkPolicyIngressRuleApplyConfiguration {
	var rules []*applynetworkingv1.NetworkPolicyIngressRuleApplyConfiguration

	serving := intstr.FromString(portName)

	if peers := callers(s); len(peers) > 0 {
		rules = append(rules, rule(serving, peers))
	}

	if ns := s.gatewayNamespaces(); len(ns) > 0 {
		rules = append(rules, rule(serving, podsOf(ns)))
	}

	if ns := s.Settings.Algorithm.MetricsNamespaces; s.measures() && len(ns) > 0 {
		port := serving
		if n := s.metricsPort(); n != *s.spec.Port {
			port = intstr.FromInt32(n)
		}

		rules = append(rules, rule(port, podsOf(ns)))
	}

	return rules
}

// rule that lets peers reach a port. Without any it lets everybody.
func rule(port intstr.IntOrString, peers []*applynetworkingv1.NetworkPolicyPeerApplyConfiguration) *applynetworkingv1.NetworkPolicyIngressRuleApplyConfiguration {
	return applynetworkingv1.NetworkPolicyIngressRule().
		WithFrom(peers...).
		WithPorts(applynetworkingv1.NetworkPolicyPort().
			WithProtocol(corev1.ProtocolTCP).
			WithPort(port))
}

// callers that spec.access lets in: by default every pod of the namespace.
func callers(s *state) []*applynetworkingv1.NetworkPolicyPeerApplyConfiguration {
	from := []v1alpha1.Caller{{}}
	if s.spec.Access != nil {
		from = s.spec.Access.From
	}

	peers := make([]*applynetworkingv1.NetworkPolicyPeerApplyConfiguration, 0, len(from))
	for _, c := range from {
		peers = append(peers, caller(c))
	}

	return peers
}

func caller(c v1alpha1.Caller) *applynetworkingv1.NetworkPolicyPeerApplyConfiguration {
	peer := applynetworkingv1.NetworkPolicyPeer()

	switch c.Namespace {
	case "":
		// A peer without any selector would be none.
		peer.WithPodSelector(applymetav1.LabelSelector())
	case everybody:
		peer.WithNamespaceSelector(applymetav1.LabelSelector())
	default:
		peer.WithNamespaceSelector(theNamespace(c.Namespace))
	}

	if len(c.PodLabels) > 0 {
		labels := make(map[string]string, len(c.PodLabels))
		for k, v := range c.PodLabels {
			labels[k] = string(v)
		}

		peer.WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(labels))
	}

	return peer
}

// podsOf namespaces, or no peers at all, which is everybody.
func podsOf(namespaces []string) []*applynetworkingv1.NetworkPolicyPeerApplyConfiguration {
	peers := make([]*applynetworkingv1.NetworkPolicyPeerApplyConfiguration, 0, len(namespaces))

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
