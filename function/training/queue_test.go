// SPDX-License-Identifier: Apache-2.0

package training

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// TestStaleView shows that a pass with an older view of a Job that waits in a queue changes nothing: once the queue has chosen nodes, the API
// server would refuse the pods as they were before. With the version of that view it refuses the whole Job, and Crossplane looks again.
func TestStaleView(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, job, spec, want string
	}{
		"Waiting":     {"the queue may admit it at the same moment", `{metadata: {resourceVersion: "7"}, spec: {suspend: true}}`, "{}", "7"},
		"Admitted":    {"nothing else changes the pods", `{metadata: {resourceVersion: "7"}, spec: {suspend: false}}`, "{}", ""},
		"NotAccepted": {"the same while the spec has a mistake", `{metadata: {resourceVersion: "7"}, spec: {suspend: true}}`, "{workers: 0}", "7"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usualSpec)
			w.edit("{queue: {name: research}}")
			w.settle()
			w.kubernetes(tc.job)
			w.edit(tc.spec)
			job, err := compose.AsMap(w.ask().Objects["job-1"].Object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, compose.Text(job, "metadata", "resourceVersion")); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if image := compose.List(job, "spec", "template", "spec", "containers"); len(image) == 0 {
				t.Errorf("%s: want the Job as it was applied, got %v", tc.reason, job)
			}
		})
	}
}

// TestInQueue shows that a Training which a queue does not let run says why, in the words of Kueue, and what helps.
func TestInQueue(t *testing.T) {
	const (
		full = `status: {conditions: [{type: QuotaReserved, status: "False", reason: Pending,
			message: "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor a, 1 more needed"}]}`
		quota = ". If that lasts, raise the quota of its ClusterQueue, lower spec.workers or spec.resources, or name another queue in spec.queue.name"
	)
	for name, tc := range map[string]struct {
		reason    string
		workloads compose.Availability
		// workload without its metadata, or empty for none. Job that it is of: that of the Training unless set.
		workload, job string
		want          string
		ttl           time.Duration
	}{
		"Full": {
			"the queue is full", compose.Available, full, "",
			`run 1 waits for queue "research" to admit it: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor a, 1 more needed` + quota,
			5 * time.Minute,
		},
		"NoSuchQueue": {
			"no quota would help", compose.Available,
			`status: {conditions: [{type: QuotaReserved, status: "False", reason: Inadmissible, message: "LocalQueue research doesn't exist"}]}`, "",
			`run 1 waits for queue "research" to admit it: LocalQueue research doesn't exist. Name another queue in spec.queue.name, or correct that one`,
			5 * time.Minute,
		},
		"Preempted": {
			"another Training came first: both causes count", compose.Available,
			`status: {conditions: [
				{type: Evicted, status: "True", reason: Preempted, message: "Preempted to accommodate a workload (UID: x)"},
				{type: QuotaReserved, status: "False", reason: Pending, message: "insufficient unused quota for cpu."}]}`, "",
			`queue "research" took run 1 back: Preempted to accommodate a workload (UID: x). It continues from the newest checkpoint once it is admitted again: ` +
				`insufficient unused quota for cpu` + quota,
			5 * time.Minute,
		},
		"JustPreempted": {
			"what Kueue says twice is said once", compose.Available,
			`status: {conditions: [
				{type: Evicted, status: "True", reason: Preempted, message: "Preempted to accommodate a workload (UID: x)"},
				{type: QuotaReserved, status: "False", reason: Pending, message: "Preempted to accommodate a workload (UID: x)"}]}`, "",
			`queue "research" took run 1 back: Preempted to accommodate a workload (UID: x). It continues from the newest checkpoint once it is admitted again` + quota,
			5 * time.Minute,
		},
		"Check": {
			"there is a quota, and something else must agree", compose.Available,
			`status: {conditions: [{type: QuotaReserved, status: "True", reason: QuotaReserved, message: x}],
				admissionChecks: [{name: a, state: Ready}, {name: budget, state: Pending, message: "no node yet"}]}`, "",
			`run 1 waits for queue "research" to admit it: the admission check budget is Pending: no node yet` + quota,
			5 * time.Minute,
		},
		"NotLookedAt": {
			"Kueue has not looked at it yet", compose.Available, "spec: {}", "",
			`run 1 waits for queue "research" to admit it: see the Workload of Job fraud-r1. Without one, check that Kueue runs and manages Jobs of this namespace`,
			10 * time.Second,
		},
		"OfAnother": {
			"a Workload of another Job says nothing", compose.Available, full, "another",
			`run 1 waits for queue "research" to admit it: see the Workload of Job fraud-r1. Without one, check that Kueue runs and manages Jobs of this namespace`,
			10 * time.Second,
		},
		"NotServed": {
			"the cluster has another version of Kueue: nothing is required that would end the whole pass", compose.Unavailable, full, "",
			`run 1 waits for queue "research" to admit it: see the Workload of Job fraud-r1. Without one, check that Kueue runs and manages Jobs of this namespace`,
			5 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usualSpec)
			w.workloads = tc.workloads
			w.edit("{queue: {name: research, priority: high}}")
			w.settle()
			w.kubernetes(`{metadata: {uid: job-uid}, spec: {suspend: true}}`)
			if tc.workload != "" {
				w.workload = composetest.With(composetest.Object(composetest.Parse(t, "{"+strings.ReplaceAll(tc.workload, "\t", "")+"}")), map[string]any{
					"metadata": map[string]any{
						"name": "job-fraud-r1-a1b2c", "namespace": "payments",
						"labels": map[string]any{"kueue.x-k8s.io/job-uid": "job-uid" + tc.job},
					},
				})
			}
			w.settle()
			if got := w.phase(); got != v1alpha1.TrainingQueued {
				t.Errorf("%s: want it to be queued, got %s", tc.reason, got)
			}
			if diff := cmp.Diff("False/Queued", w.condition(v1alpha1.TypeProgressing)); diff != "" {
				t.Errorf("%s: Progressing: -want, +got:\n%s", tc.reason, diff)
			}
			for _, c := range w.plan.Conditions {
				if diff := cmp.Diff(tc.want, c.Message); c.Type == v1alpha1.TypeProgressing && diff != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
				}
			}
			if diff := cmp.Diff(tc.ttl, w.plan.TTL); diff != "" {
				t.Errorf("%s: next look: -want, +got:\n%s", tc.reason, diff)
			}
			if _, required := w.plan.Requires[requiredWorkload]; required != (tc.workloads == compose.Available) {
				t.Errorf("%s: want what Kueue says to be required only where it is served, got %v", tc.reason, w.plan.Requires)
			}
		})
	}
}
