// SPDX-License-Identifier: Apache-2.0

// Package jobs composes the Jobs of a Database and what they need: of backups, of verifications and of hooks.
package jobs

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/order"
)

// scheduled is a CronJob of the Database.
func scheduled(s *facts.Cluster, suffix, schedule string, labels map[string]string, spec *applybatchv1.JobSpecApplyConfiguration) compose.Named {
	return applybatchv1.CronJob(s.Called(suffix), s.Namespace).
		WithLabels(s.Labels()).
		WithSpec(applybatchv1.CronJobSpec().
			WithSchedule(schedule).
			// While members are stopped, nothing can be read of them, and nothing reads what a Job reports.
			WithSuspend(order.Hibernated(s)).
			WithTimeZone("Etc/UTC").
			// Two at a time would block each other.
			WithConcurrencyPolicy(batchv1.ForbidConcurrent).
			// A run that was missed while the control plane was down starts later.
			WithStartingDeadlineSeconds(3600).
			WithSuccessfulJobsHistoryLimit(1).
			WithFailedJobsHistoryLimit(1).
			WithJobTemplate(applybatchv1.JobTemplateSpec().WithLabels(labels).WithSpec(spec)))
}

// once is a Job of the Database.
func once(s *facts.Cluster, name string, spec *applybatchv1.JobSpecApplyConfiguration) compose.Named {
	return applybatchv1.Job(name, s.Namespace).WithLabels(s.Labels()).WithSpec(spec)
}

// unlessEvicted is the policy of a Job that runs once: only a pod that had to make room may be followed by another one.
func unlessEvicted() *applybatchv1.PodFailurePolicyApplyConfiguration {
	return applybatchv1.PodFailurePolicy().WithRules(applybatchv1.PodFailurePolicyRule().
		WithAction(batchv1.PodFailurePolicyActionIgnore).
		WithOnPodConditions(applybatchv1.PodFailurePolicyOnPodConditionsPattern().
			WithType(corev1.DisruptionTarget).WithStatus(corev1.ConditionTrue)))
}

// removeOthers of the observed objects whose names begin with a prefix.
func removeOthers[V any](d *compose.Draft, s *facts.Cluster, prefix string, stay map[string]V) {
	for resource := range s.Observed {
		name, ok := strings.CutPrefix(resource, prefix)
		if _, stays := stay[name]; ok && !stays {
			d.Remove(resource)
		}
	}
}
