// SPDX-License-Identifier: Apache-2.0

package network

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Services with the names of members, of the leader, and of the standbys. Members label themselves.
//
// The label alone decides who is the leader: it follows the leader's lock, and goes when another member takes that. Readiness must not take
// the leader from its clients, because it depends on more than the server: on every container of the pod, and on probes that are late on a
// busy node. It does decide which standbys have clients, because one that is far behind must have none.
func Services(d *compose.Draft, s *facts.Cluster) {
	pods := service(&s.Names, names.SuffixPods, nil, applycorev1.ServiceSpec().
		WithClusterIP(corev1.ClusterIPNone).
		// Members have to find each other before they are ready.
		WithPublishNotReadyAddresses(true))
	// Members of all generations have their names here, and no other label in common.
	if len(s.Generations()) > 1 || s.Generation > 1 {
		pods.Spec.Selector = map[string]string{names.LabelName: s.Traits.App, names.LabelInstance: s.Name}
	}
	d.Require(names.Pods, pods)
	d.Require(names.ReadWrite, service(&s.Names, names.SuffixRW, leader(s), applycorev1.ServiceSpec().WithPublishNotReadyAddresses(true)))
	replicas := s.Selector()
	replicas[observev1alpha1.LabelRole] = observev1alpha1.RoleLabelReplica
	d.Require(names.ReadOnly, service(&s.Names, names.SuffixRO, replicas, applycorev1.ServiceSpec()))
}

// leader selects the pod of the leader. During an upgrade or a restore that may be one of either generation: members see to it that there is
// only one, and clients have to reach it while Crossplane is down.
func leader(s *facts.Cluster) map[string]string {
	selector := s.Selector()
	if s.SharesClients() {
		selector = map[string]string{names.LabelName: s.Traits.App, names.LabelInstance: s.Name}
	}
	selector[observev1alpha1.LabelRole] = observev1alpha1.RoleLabelLeader
	return selector
}

func service(s *names.Names, suffix string, selector map[string]string, spec *applycorev1.ServiceSpecApplyConfiguration) *applycorev1.ServiceApplyConfiguration {
	if selector == nil {
		selector = s.Selector()
	}
	return applycorev1.Service(s.Called(suffix), s.Namespace).
		WithLabels(s.Labels()).
		WithSpec(spec.
			WithSelector(selector).
			WithPorts(ServicePort(s.Traits.App, s.Traits.Ports.Client)))
}

// DisruptionBudget keeps drains from taking more than one member at a time. It covers all of them: a budget of the leader alone
// would allow a drain to take the last standby. A single member gets none, because its node could never be drained.
func DisruptionBudget(d *compose.Draft, s *decision.Decision) {
	if s.Headcount(s.Holds) < 2 {
		d.Remove(names.Budget)
		return
	}
	d.Require(names.Budget, NewBudget(&s.Names, names.SuffixOfMembers, policyv1.IfHealthyBudget, s.Selector()))
}

// NewBudget of one disrupted pod at a time.
func NewBudget(s *names.Names, suffix string, unhealthy policyv1.UnhealthyPodEvictionPolicyType, of map[string]string) compose.Named {
	return applypolicyv1.PodDisruptionBudget(s.Called(suffix), s.Namespace).
		WithLabels(s.Labels()).
		WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(unhealthy).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(of)))
}

// External Service for clients outside the cluster, of the poolers or of the leader. It keeps the clients' addresses, so that the
// network policy can check them.
func External(d *compose.Draft, s *facts.Cluster) {
	if !s.Exposed() {
		d.Remove(names.External)
		return
	}
	spec := applycorev1.ServiceSpec().
		WithType(corev1.ServiceTypeLoadBalancer).
		WithExternalTrafficPolicy(corev1.ServiceExternalTrafficPolicyLocal).
		WithPorts(ServicePort(s.Traits.App, s.Traits.Ports.Client))
	if s.Pooled() {
		spec.WithSelector(s.PoolerSelector())
	} else {
		// As of the Service of the leader.
		spec.WithSelector(leader(s)).
			WithPublishNotReadyAddresses(true)
	}
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
		peers = append(peers, Addresses(string(r)))
	}
	return peers
}
