// SPDX-License-Identifier: Apache-2.0

package pods

import (
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/function/jobpod"
)

// JobSpec of the run.
func (in Inputs) JobSpec(plan string) *applybatchv1.JobSpecApplyConfiguration {
	return jobpod.Job{
		Size: *in.Spec.Workers + *in.Spec.Spares, Spares: *in.Spec.Spares,
		Container: crew.Container, Final: []int32{crew.ExitFailed}, Gone: crew.ExitEnded,
		DeadlineSeconds: int64(jobpod.Seconds(in.Spec.Deadline)), Template: in.Template(plan),
	}.Spec()
}

// QueueLabels of the Job.
func (in Inputs) QueueLabels() map[string]string { return jobpod.QueueLabels(in.Spec.Queue) }
