// SPDX-License-Identifier: Apache-2.0

package compose

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"
)

// Everybody is every namespace in a spec, and in settings also what is outside the cluster.
const Everybody = "*"

type (
	// IngressRule of a NetworkPolicy.
	IngressRule = applynetworkingv1.NetworkPolicyIngressRuleApplyConfiguration
	// Peer of a NetworkPolicy.
	Peer = applynetworkingv1.NetworkPolicyPeerApplyConfiguration
)

// Ingress lets peers reach a TCP port. Without peers it lets in everybody.
func Ingress(port intstr.IntOrString, peers ...*Peer) *IngressRule {
	return applynetworkingv1.NetworkPolicyIngressRule().
		WithFrom(peers...).
		WithPorts(applynetworkingv1.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(port))
}

// NewPeer is the pods with some labels, or all pods, of a namespace: the one of the policy for "", every one for Everybody.
func NewPeer[V ~string](namespace string, podLabels map[string]V) *Peer {
	p := applynetworkingv1.NetworkPolicyPeer()
	switch namespace {
	case "":
		// A peer without any selector would be none.
		p.WithPodSelector(applymetav1.LabelSelector())
	case Everybody:
		p.WithNamespaceSelector(applymetav1.LabelSelector())
	default:
		p.WithNamespaceSelector(Namespace(namespace))
	}
	if len(podLabels) > 0 {
		labels := make(map[string]string, len(podLabels))
		for k, v := range podLabels {
			labels[k] = string(v)
		}
		p.WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(labels))
	}
	return p
}

// PodsOf namespaces, or no peers at all, which lets in everybody.
func PodsOf(namespaces []string) []*Peer {
	peers := make([]*Peer, 0, len(namespaces))
	for _, ns := range namespaces {
		if ns == Everybody {
			return nil
		}
		peers = append(peers, applynetworkingv1.NetworkPolicyPeer().WithNamespaceSelector(Namespace(ns)))
	}
	return peers
}

// Namespace selects a namespace by its name, in the label that Kubernetes sets.
func Namespace(name string) *applymetav1.LabelSelectorApplyConfiguration {
	return applymetav1.LabelSelector().WithMatchLabels(map[string]string{corev1.LabelMetadataName: name})
}
