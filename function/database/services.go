// SPDX-License-Identifier: Apache-2.0

package database

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// services: names of the members, one that leads to the leader, and one that leads to those that follow. Members label
// themselves.
func services(d *compose.Draft, s *cluster) {
	pods := s.service(suffixPods, nil, applycorev1.ServiceSpec().
		WithClusterIP(corev1.ClusterIPNone).
		// Members have to find each other before they are ready.
		WithPublishNotReadyAddresses(true))
	// Members of all generations have their names here, and no other label in common.
	if len(s.generations()) > 1 || s.generation > 1 {
		pods.Spec.Selector = map[string]string{labelName: s.traits.App, labelInstance: s.name}
	}
	d.Require(namePods, pods)
	d.Require(nameReadWrite, s.service(suffixRW, map[string]string{observev1alpha1.LabelRole: observev1alpha1.RoleLabelLeader}, applycorev1.ServiceSpec()))
	d.Require(nameReadOnly, s.service(suffixRO, map[string]string{observev1alpha1.LabelRole: observev1alpha1.RoleLabelReplica}, applycorev1.ServiceSpec()))
}

func (s *names) service(suffix string, role map[string]string, spec *applycorev1.ServiceSpecApplyConfiguration) *applycorev1.ServiceApplyConfiguration {
	selector := s.selector()
	maps.Copy(selector, role)
	return applycorev1.Service(s.called(suffix), s.namespace).
		WithLabels(s.labels()).
		WithSpec(spec.
			WithSelector(selector).
			WithPorts(applycorev1.ServicePort().
				WithName(s.traits.App).
				WithProtocol(corev1.ProtocolTCP).
				WithPort(s.traits.Ports.Client).
				WithTargetPort(intstr.FromString(s.traits.App))))
}
