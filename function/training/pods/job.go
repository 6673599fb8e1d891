// SPDX-License-Identifier: Apache-2.0

package pods

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"

	"github.com/capstan-dev/capstan/apis/crew"
)

// Labels of Kueue.
const (
	labelQueue    = "kueue.x-k8s.io/queue-name"
	labelPriority = "kueue.x-k8s.io/priority-class"
)

// podFailures are how often a pod of one index may fail by itself. Evicted and deleted pods do not count.
const podFailures = 6

// JobSpec of the run. It never has suspend, which belongs to queues: a Job that was suspended by us once would start as soon as we leave
// the field out. Nor has it a time after which Kubernetes deletes it, because the run would begin again.
//
// The Job succeeds with the coordinator, whose pod has index 0. With as many completions as pods it is a gang for schedulers that know
// gangs.
func (in Inputs) JobSpec(plan string) *applybatchv1.JobSpecApplyConfiguration {
	size := *in.Spec.Workers + *in.Spec.Spares
	onExit := func(action batchv1.PodFailurePolicyAction, code int32) *applybatchv1.PodFailurePolicyRuleApplyConfiguration {
		return applybatchv1.PodFailurePolicyRule().WithAction(action).
			WithOnExitCodes(applybatchv1.PodFailurePolicyOnExitCodesRequirement().
				WithContainerName(crew.Container).WithOperator(batchv1.PodFailurePolicyOnExitCodesOpIn).WithValues(code))
	}
	spec := applybatchv1.JobSpec().
		WithCompletionMode(batchv1.IndexedCompletion).
		WithCompletions(size).
		WithParallelism(size).
		WithBackoffLimitPerIndex(podFailures).
		WithMaxFailedIndexes(*in.Spec.Spares).
		WithPodReplacementPolicy(batchv1.Failed).
		WithSuccessPolicy(applybatchv1.SuccessPolicy().WithRules(applybatchv1.SuccessPolicyRule().WithSucceededIndexes("0"))).
		WithPodFailurePolicy(applybatchv1.PodFailurePolicy().WithRules(
			onExit(batchv1.PodFailurePolicyActionFailJob, crew.ExitFailed),
			applybatchv1.PodFailurePolicyRule().WithAction(batchv1.PodFailurePolicyActionIgnore).
				WithOnPodConditions(applybatchv1.PodFailurePolicyOnPodConditionsPattern().
					WithType(corev1.DisruptionTarget).WithStatus(corev1.ConditionTrue)),
			onExit(batchv1.PodFailurePolicyActionIgnore, crew.ExitEnded))).
		WithTemplate(in.Template(plan))
	if in.Spec.Deadline != nil {
		spec.WithActiveDeadlineSeconds(int64(seconds(in.Spec.Deadline)))
	}
	return spec
}

// QueueLabels of the Job.
func (in Inputs) QueueLabels() map[string]string {
	q := in.Spec.Queue
	if q == nil {
		return nil
	}
	l := map[string]string{labelQueue: q.Name}
	if q.Priority != "" {
		l[labelPriority] = q.Priority
	}
	return l
}
