// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/function/compose"
)

// TestStaleView shows that a pass with an older view of a Job that waits in a queue changes nothing: once the queue has chosen nodes, the API
// server would refuse the pods as they were before. With the version of that view it refuses the whole Job, and Crossplane looks again.
func TestStaleView(t *testing.T) {
	const run = "daily-run-a"
	for name, tc := range map[string]struct {
		reason, job, spec, want string
	}{
		"Waiting":     {"The queue may admit it at the same moment.", `{metadata: {resourceVersion: "7"}, spec: {suspend: true}}`, "{}", "7"},
		"Admitted":    {"Nothing else changes the pods.", `{metadata: {resourceVersion: "7"}, spec: {suspend: false}}`, "{}", ""},
		"NotAccepted": {"The same while the spec has a mistake.", `{metadata: {resourceVersion: "7"}, spec: {suspend: true}}`, "{engine: Container, image: '-'}", "7"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, byIDSpec)
			w.edit("{queue: {name: research}}")
			w.settle()
			w.kubernetes(run, tc.job)
			w.edit(tc.spec)
			job, err := compose.AsMap(w.ask().Objects[jobResource(run)].Object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, compose.Text(job, "metadata", "resourceVersion")); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if len(compose.List(job, "spec", "template", "spec", "containers")) == 0 {
				t.Errorf("%s: want the Job as it was applied, got %v", tc.reason, job)
			}
		})
	}
}
