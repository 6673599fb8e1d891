// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// service is where callers reach the Algorithm. It names the port of the pods
// instead of numbering it, so that an edit of the number is right for the pods
// before and after it.
func service(s *state) error {
	s.ask(nameService, applycorev1.Service(s.name, s.namespace).
		WithLabels(s.labels()).
		WithSpec(applycorev1.ServiceSpec().
			WithSelector(s.selector()).
			WithPorts(applycorev1.ServicePort().
				WithName(portName).
				WithProtocol(corev1.ProtocolTCP).
				WithPort(80).
				WithTargetPort(intstr.FromString(portName)))))

	return nil
}
