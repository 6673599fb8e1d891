// SPDX-License-Identifier: Apache-2.0

package network

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// backupPeers are the pods that take backups: no others reach the members' backup tool.
func backupPeers(s *facts.Cluster) []*compose.IngressRule {
	if !backup.Archives(s) {
		return nil
	}
	by := map[string]string{names.LabelBackupOf: s.Name}
	if backup.IsOnVolume(s) {
		by = s.RepositorySelector()
	}
	return []*compose.IngressRule{Ingress(s.Traits.Ports.Backup, applynetworkingv1.NetworkPolicyPeer().
		WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(by)))}
}

// HookPeers are the pods of hooks that run SQL. They reach the members' server also when spec.network does not admit them.
func HookPeers(s *facts.Cluster) []*compose.Peer {
	for _, h := range s.AllHooks() {
		if h.SQL != nil {
			return []*compose.Peer{applynetworkingv1.NetworkPolicyPeer().
				WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{names.LabelHookOf: s.Name}))}
		}
	}
	return nil
}

// Ingress lets peers reach a port. Without peers it admits all traffic.
func Ingress(port int32, peers ...*compose.Peer) *compose.IngressRule {
	return compose.Ingress(intstr.FromInt32(port), peers...)
}

// Ports of name servers. Some listen on another port behind their Service.
const (
	portDNS       = 53
	portDNSBehind = 5353
)

// Port of a protocol.
func Port(protocol corev1.Protocol, number int32) *applynetworkingv1.NetworkPolicyPortApplyConfiguration {
	return applynetworkingv1.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(number))
}

// ToNameServers lets pods resolve names.
func ToNameServers() *applynetworkingv1.NetworkPolicyEgressRuleApplyConfiguration {
	return applynetworkingv1.NetworkPolicyEgressRule().WithPorts(
		Port(corev1.ProtocolUDP, portDNS), Port(corev1.ProtocolTCP, portDNS),
		Port(corev1.ProtocolUDP, portDNSBehind), Port(corev1.ProtocolTCP, portDNSBehind))
}

// poolerPeers reach the members' server.
func poolerPeers(s *facts.Cluster) []*compose.Peer {
	if !s.Pooled() {
		return nil
	}
	return []*compose.Peer{applynetworkingv1.NetworkPolicyPeer().WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(s.PoolerSelector()))}
}

// ToRepository lets pods reach the host of the volume of backups.
func ToRepository(s *names.Names) *applynetworkingv1.NetworkPolicyEgressRuleApplyConfiguration {
	return applynetworkingv1.NetworkPolicyEgressRule().
		WithTo(applynetworkingv1.NetworkPolicyPeer().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(s.RepositorySelector()))).
		WithPorts(Port(corev1.ProtocolTCP, s.Traits.Ports.Backup), Port(corev1.ProtocolTCP, s.Traits.Ports.Repository))
}

// NewPolicy of the pods with some labels. Only these rules allow traffic to and from them.
func NewPolicy(s *names.Names, suffix string, of map[string]string, ingress []*compose.IngressRule, egress ...*EgressRule) *applynetworkingv1.NetworkPolicyApplyConfiguration {
	return applynetworkingv1.NetworkPolicy(s.Called(suffix), s.Namespace).
		WithLabels(s.Labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(of)).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithIngress(ingress...).
			WithEgress(egress...))
}

// EgressRule of a policy.
type EgressRule = applynetworkingv1.NetworkPolicyEgressRuleApplyConfiguration

// To is a rule that lets pods reach ports of peers.
func To(peer *compose.Peer, ports ...int32) *EgressRule {
	r := applynetworkingv1.NetworkPolicyEgressRule().WithTo(peer)
	for _, number := range ports {
		r.WithPorts(Port(corev1.ProtocolTCP, number))
	}
	return r
}

// Pods with some labels.
func Pods(labels map[string]string) *compose.Peer {
	return applynetworkingv1.NetworkPolicyPeer().WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(labels))
}

// Members of all generations.
func Members(s *facts.Cluster) *compose.Peer {
	return applynetworkingv1.NetworkPolicyPeer().WithPodSelector(s.EveryMember())
}

// ServicePort for the port of the same name of pods.
func ServicePort(name string, number int32) *applycorev1.ServicePortApplyConfiguration {
	return applycorev1.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).WithPort(number).WithTargetPort(intstr.FromString(name))
}
