// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	networkingv1 "k8s.io/api/networking/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"
)

// networkPolicy lets callers reach the one port that they use, what scrapes metrics
// the port of those, and nobody else reach anything. A port is all or nothing: who
// may scrape metrics on the port of the callers may call as well. Probes come from
// the node and need no rule. What pods may call stays open: an Algorithm fetches
// models, features and licences from places that only its image knows, and a
// policy that guesses them breaks it.
func networkPolicy(s *state) error {
	s.ask(nameNetworkPolicy, applynetworkingv1.NetworkPolicy(s.name, s.namespace).
		WithLabels(s.labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{labelAlgorithm: s.name})).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(ingress(s)...)))

	return nil
}
