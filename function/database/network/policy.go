// SPDX-License-Identifier: Apache-2.0

// Package network composes how a Database is reached: Services, policies, and the budget of its disruptions.
package network

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
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
	provider := Pods(map[string]string{names.LabelName: providerName}).
		WithNamespaceSelector(compose.Namespace(s.Settings.Database.CrossplaneNamespace))
	rules := []*compose.IngressRule{
		Ingress(s.Traits.Ports.Client, direct(s, members, provider)...),
		Ingress(s.Traits.Ports.Coordination, members, provider),
	}
	if s.Traits.Ports.Peers != 0 {
		rules = append(rules, Ingress(s.Traits.Ports.Peers, members))
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
	if s.Pooled() {
		poolers := []*compose.Peer{Pods(s.PoolerSelector())}
		if s.PooledReaders() {
			poolers = append(poolers, Pods(s.ReaderPoolerSelector()))
		}
		return slices.Concat(peers, Clients(s), poolers, HookPeers(s))
	}
	return slices.Concat(peers, Clients(s), HookPeers(s), Outside(s))
}

// Clients that spec.network admits: by default every pod of the namespace.
func Clients(s *facts.Cluster) []*compose.Peer {
	from := []v1alpha1.DatabaseClient{{}}
	if s.Spec.Network != nil {
		from = s.Spec.Network.From
	}
	peers := make([]*compose.Peer, 0, len(from))
	for _, c := range from {
		if c.CIDR != "" {
			peers = append(peers, Addresses(c.CIDR))
		} else {
			peers = append(peers, compose.NewPeer(c.Namespace, c.PodLabels))
		}
	}
	return peers
}

// Addresses of a network.
func Addresses(cidr string) *compose.Peer {
	return applynetworkingv1.NetworkPolicyPeer().WithIPBlock(applynetworkingv1.IPBlock().WithCIDR(cidr))
}

// backupPeers are the pods that take backups: no others reach the members' backup tool.
func backupPeers(s *facts.Cluster) []*compose.IngressRule {
	if !backup.Archives(s) {
		return nil
	}
	by := map[string]string{names.LabelBackupOf: s.Name}
	if backup.TakenByHost(s) {
		by = s.RepositorySelector()
	}
	return []*compose.IngressRule{Ingress(s.Traits.Ports.Backup, Pods(by))}
}

// HookPeers are the pods of hooks that run SQL. They reach the members' server also when spec.network does not admit them.
func HookPeers(s *facts.Cluster) []*compose.Peer {
	for _, h := range s.AllHooks() {
		if h.SQL != nil {
			return []*compose.Peer{Pods(map[string]string{names.LabelHookOf: s.Name})}
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
func ToNameServers() *EgressRule {
	return applynetworkingv1.NetworkPolicyEgressRule().WithPorts(
		Port(corev1.ProtocolUDP, portDNS), Port(corev1.ProtocolTCP, portDNS),
		Port(corev1.ProtocolUDP, portDNSBehind), Port(corev1.ProtocolTCP, portDNSBehind))
}

// ToRepository lets pods reach the host of the volume of backups.
func ToRepository(s *names.Names) *EgressRule {
	ports := []int32{s.Traits.Ports.Repository}
	if s.Traits.BackupPort != "" {
		ports = append([]int32{s.Traits.Ports.Backup}, ports...)
	}
	return To(Pods(s.RepositorySelector()), ports...)
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
