// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// SignalName is the NowName of a backup that a Signal asks for. No id of a spec has a slash.
func SignalName(s observev1alpha1.ActiveSignal) string { return NowName("signal/" + s.UID) }

// SignalFailure is the latest backup of a Signal that failed: the Signal, and when the Job began.
func SignalFailure(c *facts.Cluster) (signal string, began time.Time, failed bool) {
	for _, s := range c.Signals.Backups() {
		if at, _, bad := Failure(c.Observed[names.BackupNowPrefix+SignalName(s)]); bad && at.After(began) {
			signal, began, failed = s.Name, at, true
		}
	}
	return signal, began, failed
}

// RunsForSignal reports whether a Job takes a backup that a Signal asked for, and has not ended.
func RunsForSignal(job compose.Object) bool {
	return job != nil && compose.TextOf(job, "metadata", "annotations", names.AnnotationSignal) != "" &&
		!compose.IsTrue(job.Map(), xpv2.ConditionType(batchv1.JobComplete)) && !compose.IsTrue(job.Map(), xpv2.ConditionType(batchv1.JobFailed))
}
