// SPDX-License-Identifier: Apache-2.0

package jobpod

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// An Observed Job is what Kubernetes says of it.
type Observed struct {
	// Created is nil for a Job that has not been applied yet.
	Created *time.Time
	// Deleting reports that it ends with its pods. Suspended reports that a queue has not admitted it.
	Deleting, Suspended bool
	// Complete and Failed are its ends, with the Reason and Message of Kubernetes. Some pods may still end.
	Complete, Failed bool
	Reason, Message  string
}

// Observe a Job.
func Observe(o compose.Object) Observed {
	m := o.Map()
	j := Observed{
		Created:   Moment(compose.Text(m, "metadata", "creationTimestamp")),
		Deleting:  compose.Text(m, "metadata", "deletionTimestamp") != "",
		Suspended: compose.Map(m, "spec")["suspend"] == true,
	}
	// The first two say how it will end, and stay: a pod on a node that is gone keeps Kubernetes from the others.
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget, batchv1.JobComplete, batchv1.JobFailed} {
		c := compose.Condition(m, string(t))
		if c["status"] != "True" {
			continue
		}
		j.Reason, j.Message = compose.Text(c, "reason"), compose.Text(c, "message")
		complete := t == batchv1.JobComplete || t == batchv1.JobSuccessCriteriaMet
		j.Complete, j.Failed = j.Complete || complete, j.Failed || !complete
	}
	return j
}

// Moment of a text in RFC 3339, in UTC, or nil.
func Moment(text string) *time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	at = at.UTC()
	return &at
}
