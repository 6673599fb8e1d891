// SPDX-License-Identifier: Apache-2.0

package jobpod

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Labels of Kueue. The last one is on the Workload of a Job, and has the UID of the Job.
const (
	labelQueue    = "kueue.x-k8s.io/queue-name"
	labelPriority = "kueue.x-k8s.io/priority-class"
	labelJob      = "kueue.x-k8s.io/job-uid"
)

// WorkloadGVK is the kind in which Kueue says whether a queue admits a Job. It is only read.
var WorkloadGVK = schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "Workload"}

// maxWords of Kueue in bytes: a message can name each flavor of a queue.
const maxWords = 512

// QueueLabels of a Job that a queue of Kueue admits.
func QueueLabels(q *v1alpha1.JobQueue) map[string]string {
	if q == nil {
		return nil
	}
	l := map[string]string{labelQueue: q.Name}
	if q.Priority != "" {
		l[labelPriority] = q.Priority
	}
	return l
}

// UnlessChanged has the API server refuse a Job that waits in a queue, if it is no longer as it was seen. The queue may choose nodes for it
// at the same moment, and then the pods as they were before are a change of what cannot change. Crossplane takes a refusal for an old
// version as a reason to look again.
func UnlessChanged(d *compose.Draft, resource string, seen compose.Object) {
	if seen == nil || !d.Has(resource) {
		return
	}
	version := compose.TextOf(seen, "metadata", "resourceVersion")
	if version == "" {
		return
	}
	job := compose.Keep(seen)
	metadata := maps.Clone(compose.Map(job, "metadata"))
	metadata["resourceVersion"] = version
	job["metadata"] = metadata
	d.Edit(resource, job)
}

// WorkloadOf requires what Kueue says of a Job.
func WorkloadOf(job compose.Object) compose.Requirement {
	return compose.Requirement{
		Kind: WorkloadGVK, Namespace: compose.TextOf(job, "metadata", "namespace"),
		Label: compose.Label{Key: labelJob, Value: compose.TextOf(job, "metadata", "uid")},
	}
}

// A Waiting Job is what Kueue says of a Job that it does not let run.
type Waiting struct {
	// Workload is its name.
	Workload string
	// Evicted is why a queue took the Job back after it had admitted it, or empty.
	Evicted string
	// Cause of the wait, or empty as long as Kueue has not checked it.
	Cause string
	// Misconfigured reports that the queue, or the one of the cluster behind it, does not exist or is stopped.
	Misconfigured bool
}

// Wait as Kueue describes it, or nil without its Workload.
func Wait(workload compose.Object) *Waiting {
	if workload == nil {
		return nil
	}
	m := workload.Map()
	w := &Waiting{Workload: compose.Text(m, "metadata", "name")}
	says := func(condition, status string) (reason, message string) {
		c := compose.Condition(m, condition)
		if compose.Text(c, "status") != status {
			return "", ""
		}
		return compose.Text(c, "reason"), words(compose.Text(c, "message"))
	}
	_, w.Evicted = says("Evicted", "True")
	reason, cause := says("QuotaReserved", "False")
	// Either is a reason why no quota would help. Versions of Kueue differ in how exact they are.
	w.Cause, w.Misconfigured = cause, reason == "Inadmissible" || reason == "Misconfigured" || reason == "Suspended"
	if reason, _ := says("QuotaReserved", "True"); reason != "" {
		w.Cause = checks(m)
	}
	return w
}

// checks that a Workload with a quota waits for.
func checks(workload map[string]any) string {
	for _, item := range compose.List(workload, "status", "admissionChecks") {
		c, _ := item.(map[string]any)
		if state := compose.Text(c, "state"); state != "" && state != "Ready" {
			return words(strings.TrimSpace("the admission check " + compose.Text(c, "name") + " is " + state + ": " + compose.Text(c, "message")))
		}
	}
	return ""
}

// words of Kueue in a sentence of ours.
func words(s string) string {
	s = strings.TrimRight(strings.ToValidUTF8(s, ""), " .:")
	if len(s) <= maxWords {
		return s
	}
	return strings.ToValidUTF8(s[:maxWords-len("…")], "") + "…"
}
