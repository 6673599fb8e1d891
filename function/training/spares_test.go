// SPDX-License-Identifier: Apache-2.0

package training

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// TestSparesAreApart shows which pods prefer to be on nodes of their own.
func TestSparesAreApart(t *testing.T) {
	apart := composetest.Parse(t, `{all: [{
	  maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, nodeTaintsPolicy: Honor,
	  labelSelector: {matchLabels: {capstan.dev/training: fraud, capstan.dev/run: "1"}}}]}`)["all"]
	for name, tc := range map[string]struct {
		reason string
		spec   string
		want   any
	}{
		"Without": {reason: "Without spares a lost node ends the attempt in any case, and workers of a node are near each other.", spec: usualSpec},
		"Spare": {
			reason: "A spare on the node of a worker is lost with it.",
			spec:   `{image: registry.example.org/train:1, args: [train], workers: 2, spares: 1, checkpoint: {claimName: shared}}`, want: apart,
		},
		"Shared": {
			reason: "The claim is mounted on all nodes.",
			spec: `{image: registry.example.org/train:1, args: [train], workers: 2, spares: 1, checkpoint: {claim: {accessModes: [ReadWriteMany],
			  resources: {requests: {storage: 1Gi}}}}}`, want: apart,
		},
		"One node": {
			reason: "The claim is mounted on one node only, and pods on others would wait for it.",
			spec: `{image: registry.example.org/train:1, args: [train], workers: 2, spares: 1, checkpoint: {claim: {accessModes: [ReadWriteOnce],
			  resources: {requests: {storage: 1Gi}}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begun(t, tc.spec)
			resource, _ := w.currentJob()
			got := w.Composed[resource].Field("spec", "template", "spec", "topologySpreadConstraints")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMissingMember shows what is said of a pod that is missing while all ranks run.
func TestMissingMember(t *testing.T) {
	const spec = `{image: registry.example.org/train:1, args: [train], workers: 4, spares: 2, checkpoint: {claimName: shared}}`
	const since = `since: "2026-11-20T11:00:00Z"`
	for name, tc := range map[string]struct {
		reason string
		report string
		want   string
		words  string
	}{
		"None": {reason: "All pods run.", report: running, want: "True/Training"},
		"Lost": {
			reason: "The pod is on a node that is lost, and a spare has its place.",
			report: `{phase: Running, attempt: 1, missing: [{index: 1, ` + since + `}],
			  lastFault: {class: Infrastructure, attempt: 0, index: 1, rank: -1, node: node-7, message: "pod 1 is lost: it was silent for 10s"}}`,
			want: "False/MemberMissing",
			words: "all ranks run, and 1 of 2 spares is left: pod 1, last seen on node node-7, is missing since 2026-11-20T11:00:00Z. " +
				"If the node is lost, Kubernetes replaces the pod when the node is back, or when you delete the node",
		},
		"Spare": {
			reason: "A spare that is missing was on no known node.",
			report: `{phase: Running, attempt: 1, missing: [{index: 5, ` + since + `}],
			  lastFault: {class: User, attempt: 0, index: 1, rank: 1, node: node-7, message: "exit code 1"}}`,
			want:  "False/MemberMissing",
			words: "all ranks run, and 1 of 2 spares is left: pod 5 is missing since 2026-11-20T11:00:00Z. See its events, and its node",
		},
		"Both": {
			reason: "The next loss stops the ranks.",
			report: `{phase: Running, attempt: 2, missing: [{index: 1, ` + since + `}, {index: 4, ` + since + `}]}`,
			want:   "False/MemberMissing",
			words: "all ranks run, and no spare is left: pod 1 is missing since 2026-11-20T11:00:00Z, pod 4 is missing since 2026-11-20T11:00:00Z. " +
				"See their events, and their nodes",
		},
		"Pull": {
			reason: "What blocks the pod is known.",
			report: `{phase: Running, attempt: 0, missing: [{index: 5, ` + since + `}], pods: {reason: ImagePullFailed, message: "no such tag"}}`,
			want:   "False/ImagePullFailed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begun(t, spec)
			w.report(tc.report)
			w.settle()
			if got := w.condition(v1alpha1.TypePodsHealthy); got != tc.want || w.phase() != v1alpha1.TrainingRunning || !w.plan.Ready {
				t.Errorf("%s\nwant %s of a Training that runs, got %s, %s, ready %v", tc.reason, tc.want, got, w.phase(), w.plan.Ready)
			}
			for _, c := range w.plan.Conditions {
				if c.Type == v1alpha1.TypePodsHealthy && !strings.Contains(c.Message, tc.words) {
					t.Errorf("%s\nwant %q\n got %q", tc.reason, tc.words, c.Message)
				}
			}
		})
	}
}
