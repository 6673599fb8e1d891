// SPDX-License-Identifier: Apache-2.0

package jobpod

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// podFailures are how often a pod of one index may fail by itself. Evicted and deleted pods do not count.
const podFailures = 6

// killed is the exit code of a container whose processes the kernel killed.
const killed = 137

// A Job in whose pods the companion is process 1.
type Job struct {
	// Size is the number of pods, and Spares how many of them can be lost for good.
	Size, Spares int32
	// Container of the companion, the exit codes by which it ends the Job, and the one of a pod that had to go.
	Container string
	Final     []int32
	Gone      int32
	// Killed: a pod whose container the kernel killed ends the Job, so that what makes Jobs can give another one more memory.
	Killed bool
	// DeadlineSeconds of the Job, or 0.
	DeadlineSeconds int64
	Template        *applycorev1.PodTemplateSpecApplyConfiguration
}

// Spec of the Job. It never has suspend, which belongs to queues: a Job that was suspended by us once would start as soon as we leave
// the field out. Nor has it a time after which Kubernetes deletes it, because what composes it would make it again.
//
// The Job succeeds with the pod of index 0. With as many completions as pods it is a gang for schedulers that know gangs.
func (j Job) Spec() *applybatchv1.JobSpecApplyConfiguration {
	onExit := func(action batchv1.PodFailurePolicyAction, codes ...int32) *applybatchv1.PodFailurePolicyRuleApplyConfiguration {
		return applybatchv1.PodFailurePolicyRule().WithAction(action).
			WithOnExitCodes(applybatchv1.PodFailurePolicyOnExitCodesRequirement().
				WithContainerName(j.Container).WithOperator(batchv1.PodFailurePolicyOnExitCodesOpIn).WithValues(codes...))
	}
	spec := applybatchv1.JobSpec().
		WithCompletionMode(batchv1.IndexedCompletion).
		WithCompletions(j.Size).
		WithParallelism(j.Size).
		WithBackoffLimitPerIndex(podFailures).
		WithMaxFailedIndexes(j.Spares).
		WithPodReplacementPolicy(batchv1.Failed).
		WithSuccessPolicy(applybatchv1.SuccessPolicy().WithRules(applybatchv1.SuccessPolicyRule().WithSucceededIndexes("0"))).
		WithPodFailurePolicy(applybatchv1.PodFailurePolicy().WithRules(
			onExit(batchv1.PodFailurePolicyActionFailJob, j.Final...),
			applybatchv1.PodFailurePolicyRule().WithAction(batchv1.PodFailurePolicyActionIgnore).
				WithOnPodConditions(applybatchv1.PodFailurePolicyOnPodConditionsPattern().
					WithType(corev1.DisruptionTarget).WithStatus(corev1.ConditionTrue)),
			onExit(batchv1.PodFailurePolicyActionIgnore, j.Gone))).
		WithTemplate(j.Template)
	if j.Killed {
		spec.PodFailurePolicy.WithRules(onExit(batchv1.PodFailurePolicyActionFailJob, killed))
	}
	if j.DeadlineSeconds > 0 {
		spec.WithActiveDeadlineSeconds(j.DeadlineSeconds)
	}
	return spec
}
