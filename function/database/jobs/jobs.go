// SPDX-License-Identifier: Apache-2.0

// Package jobs composes the Jobs of a Database and what they need: of backups, of verifications and of hooks.
package jobs

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/order"
	"github.com/capstan-dev/capstan/function/database/pods"
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

// podOf a Job, with one container. It is not started again in place, so that its log stays.
func podOf(s *facts.Cluster, c *applycorev1.ContainerApplyConfiguration, volumes ...*applycorev1.VolumeApplyConfiguration) *applycorev1.PodSpecApplyConfiguration {
	return pods.HardenedPod(s).WithRestartPolicy(corev1.RestartPolicyNever).WithContainers(pods.Hardened(c)).WithVolumes(volumes...)
}

// withVolume for the data, of the members' storage class and size, which is deleted with the pod: on the node's own disk the data would
// take the room of other pods, and an eviction would end the Job.
func withVolume(s *facts.Cluster, pod *applycorev1.PodSpecApplyConfiguration, labels map[string]string) {
	pod.WithVolumes(applycorev1.Volume().WithName(names.VolumeData).WithEphemeral(applycorev1.EphemeralVolumeSource().
		WithVolumeClaimTemplate(applycorev1.PersistentVolumeClaimTemplate().WithLabels(labels).WithSpec(pods.ClaimSpec(s)))))
	pod.Containers[0].WithVolumeMounts(pods.Mount(names.VolumeData, "/data", false))
	pod.SecurityContext.WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
}

// jobSpec with a number of pods that may fail before the Job does, and the time that it has for all of them.
func jobSpec(pod *applycorev1.PodSpecApplyConfiguration, labels map[string]string, retries int32, deadline time.Duration) *applybatchv1.JobSpecApplyConfiguration {
	return applybatchv1.JobSpec().
		WithBackoffLimit(retries).
		WithActiveDeadlineSeconds(int64(deadline.Seconds())).
		WithTemplate(applycorev1.PodTemplateSpec().WithLabels(labels).WithSpec(pod))
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
