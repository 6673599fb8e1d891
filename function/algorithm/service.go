// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// service is where callers reach the Algorithm: the pods of the live slot, so that
// nobody meets a revision on trial by way of it. Only where no Gateway sends a share
// of callers to that one by weight, the Service does by the number of pods. It names
// the port of the pods instead of numbering it, so that it is right for every
// revision.
func service(s *state) error {
	selector := s.selector(s.decision.ledger.Slot)
	if s.weight() > 0 && s.byReplicas() {
		delete(selector, labelSlot)
	}

	s.ask(nameService, applycorev1.Service(s.name, s.namespace).
		WithLabels(s.labels()).
		WithAnnotations(map[string]string{annotationLedger: s.decision.ledger.text()}).
		WithSpec(applycorev1.ServiceSpec().
			WithSelector(selector).
			WithPorts(httpPort())))

	return nil
}

// slotService is where a Gateway and Prometheus find the pods of a slot.
func (s *state) slotService(slot string) {
	spec := applycorev1.ServiceSpec().
		WithSelector(s.selector(slot)).
		WithPorts(httpPort())

	svc := applycorev1.Service(s.slotServiceName(slot), s.namespace).
		WithLabels(s.slotLabels(slot)).
		WithSpec(spec)

	if m := s.spec.Metrics; s.measures() {
		// For a Prometheus without its operator: the usual annotations.
		svc.WithAnnotations(map[string]string{
			"prometheus.io/scrape": "true",
			"prometheus.io/port":   strconv.Itoa(int(s.metricsPort())),
			"prometheus.io/path":   m.Path,
		})

		if s.metricsPort() != *s.spec.Port {
			spec.WithPorts(applycorev1.ServicePort().
				WithName(portMetrics).
				WithProtocol(corev1.ProtocolTCP).
				WithPort(s.metricsPort()).
				WithTargetPort(intstr.FromInt32(s.metricsPort())))
		}
	}

	s.ask(serviceOf(slot), svc)
}

func httpPort() *applycorev1.ServicePortApplyConfiguration {
	return applycorev1.ServicePort().
		WithName(portName).
		WithProtocol(corev1.ProtocolTCP).
		WithPort(80).
		WithTargetPort(intstr.FromString(portName))
}
