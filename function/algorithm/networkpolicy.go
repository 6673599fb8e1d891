// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"
)

// networkPolicy lets pods of the same namespace reach the one port that callers
// use, and nobody else reach anything. What pods may call stays open: an
// Algorithm fetches models, features and licences from places that only its
// image knows, and a policy that guesses them breaks it.
func networkPolicy(s *state) error {
	s.ask(nameNetworkPolicy, applynetworkingv1.NetworkPolicy(s.name, s.namespace).
		WithLabels(s.labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{labelAlgorithm: s.name})).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(applynetworkingv1.NetworkPolicyIngressRule().
				WithFrom(applynetworkingv1.NetworkPolicyPeer().WithPodSelector(applymetav1.LabelSelector())).
				WithPorts(applynetworkingv1.NetworkPolicyPort().
					WithProtocol(corev1.ProtocolTCP).
					WithPort(intstr.FromString(portName))))))

	return nil
}
