// SPDX-License-Identifier: Apache-2.0

package database

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// failure is when a Job began and when it failed, if it did: none of its pods is started again.
func failure(job compose.Object) (began, ended time.Time, failed bool) {
	if job == nil {
		return time.Time{}, time.Time{}, false
	}
	c := compose.Condition(job.Map(), string(batchv1.JobFailed))
	from, to := stamp(compose.Text(job.Map(), "status", "startTime")), stamp(compose.Text(c, "lastTransitionTime"))
	if compose.Text(c, "status") != string(corev1.ConditionTrue) || from == nil || to == nil {
		return time.Time{}, time.Time{}, false
	}
	return from.Time, to.Time, true
}

// scheduledFailure is when the Job began that a CronJob made last, if that has ended without success.
func scheduledFailure(cron compose.Object) (time.Time, bool) {
	if cron == nil {
		return time.Time{}, false
	}
	status := compose.Map(cron.Map(), "status")
	began, succeeded := stamp(compose.Text(status, "lastScheduleTime")), stamp(compose.Text(status, "lastSuccessfulTime"))
	if began == nil || len(compose.List(status, "active")) > 0 || succeeded != nil && !succeeded.Before(began) {
		return time.Time{}, false
	}
	return began.Time, true
}
