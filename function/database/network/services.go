// SPDX-License-Identifier: Apache-2.0

package network

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Services with the names of members, of the leader, and of the standbys. Members label themselves.
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
	d.Require(names.ReadWrite, service(&s.Names, names.SuffixRW, map[string]string{observev1alpha1.LabelRole: observev1alpha1.RoleLabelLeader}, applycorev1.ServiceSpec()))
	d.Require(names.ReadOnly, service(&s.Names, names.SuffixRO, map[string]string{observev1alpha1.LabelRole: observev1alpha1.RoleLabelReplica}, applycorev1.ServiceSpec()))
}

func service(s *names.Names, suffix string, role map[string]string, spec *applycorev1.ServiceSpecApplyConfiguration) *applycorev1.ServiceApplyConfiguration {
	selector := s.Selector()
	maps.Copy(selector, role)
	return applycorev1.Service(s.Called(suffix), s.Namespace).
		WithLabels(s.Labels()).
		WithSpec(spec.
			WithSelector(selector).
			WithPorts(ServicePort(s.Traits.App, s.Traits.Ports.Client)))
}
