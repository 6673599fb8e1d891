// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// deployment runs the pods.
func deployment(s *state) error {
	spec := applyappsv1.DeploymentSpec().
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(s.selector())).
		WithStrategy(strategy()).
		WithProgressDeadlineSeconds(600).
		WithRevisionHistoryLimit(2).
		WithTemplate(podTemplate(s))

	raw, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("cannot name the revision: %w", err)
	}

	s.revision = compose.Hash(raw)
	spec.Replicas = s.replicas()

	if s.awaitsAccount() {
		spec.WithPaused(true)
	}

	s.ask(nameDeployment, applyappsv1.Deployment(s.slotName(), s.namespace).
		WithLabels(s.slotLabels()).
		WithAnnotations(map[string]string{annotationRevision: s.revision}).
		WithSpec(spec))

	// New pods could not start without what was refused. Those that run stay.
	if s.running.exists && s.lacksDependency() {
		s.keep(nameDeployment)
	}

	return nil
}

// awaitsAccount tells whether the first pods have to wait for their
// ServiceAccount. Crossplane applies objects in no order, and a Deployment whose
// pods were refused once for want of it keeps telling so, whatever else refuses
// them later.
func (s *state) awaitsAccount() bool {
	return s.spec.ServiceAccountName == "" && s.Observed[nameServiceAccount] == nil && s.running.total == 0
}

// lacksDependency tells whether something that pods need to start is left out.
func (s *state) lacksDependency() bool {
	account := s.spec.ServiceAccountName == "" && s.withholding.LeavesOut(nameServiceAccount)
	files := s.spec.Config != nil && s.withholding.LeavesOut(s.configResource())

	return account || files
}

// strategy never goes below the asked number. A quarter more, rounded up, makes
// one more pod for a small Algorithm.
func strategy() *applyappsv1.DeploymentStrategyApplyConfiguration {
	return applyappsv1.DeploymentStrategy().
		WithType(appsv1.RollingUpdateDeploymentStrategyType).
		WithRollingUpdate(applyappsv1.RollingUpdateDeployment().
			WithMaxUnavailable(intstr.FromInt32(0)).
			WithMaxSurge(intstr.FromString("25%")))
}

// gpuToleration lets pods run on nodes that are kept for those who ask for
// their GPU, by a taint whose key is the resource.
func gpuToleration(s *state) []corev1.Toleration {
	if s.spec.Resources.GPU == "" {
		return nil
	}

	return []corev1.Toleration{{Key: s.spec.Resources.GPU, Operator: corev1.TolerationOpExists}}
}
