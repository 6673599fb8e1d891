// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// on a node.
func on(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = node }
}

// well is a pod that is ready.
func well(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].Status = corev1.ConditionTrue
	}
	p.Status.ContainerStatuses[0].Ready = true
}

// TestExtent: how many of the pods of a slot have a trouble says whether it is what all of them run.
func TestExtent(t *testing.T) {
	bad := terminated(3, "Error", "cannot open model")
	leaving := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	type group struct {
		n    int
		node string
		mods []func(*corev1.Pod)
	}
	cases := map[string]struct {
		reason string
		pods   []group
		want   v1alpha1.FindingExtent
	}{
		"OnlyPod":        {reason: "The only pod is all there is.", pods: []group{{1, "n1", []func(*corev1.Pod){bad}}}},
		"OneOfTwo":       {reason: "One of two on the same node may be unlucky.", pods: []group{{1, "n1", []func(*corev1.Pod){bad}}, {1, "n1", []func(*corev1.Pod){well}}}, want: v1alpha1.FindingOfFew},
		"BothOfTwo":      {reason: "Both are not.", pods: []group{{2, "n1", []func(*corev1.Pod){bad}}}},
		"OnBadNode":      {reason: "All of them on one node, and those elsewhere serve.", pods: []group{{2, "n1", []func(*corev1.Pod){bad}}, {2, "n2", []func(*corev1.Pod){well}}}, want: v1alpha1.FindingOnNode},
		"OneOnBadNode":   {reason: "One of twenty on a node that breaks what runs there.", pods: []group{{1, "n1", []func(*corev1.Pod){bad}}, {19, "n2", []func(*corev1.Pod){well}}}, want: v1alpha1.FindingOnNode},
		"OnTwoNodes":     {reason: "Two nodes do not break at once.", pods: []group{{1, "n1", []func(*corev1.Pod){bad}}, {1, "n2", []func(*corev1.Pod){bad}}, {2, "n3", []func(*corev1.Pod){well}}}},
		"FewOnTwoNodes":  {reason: "Two of twenty are fewer than a quarter.", pods: []group{{1, "n1", []func(*corev1.Pod){bad}}, {1, "n2", []func(*corev1.Pod){bad}}, {18, "n3", []func(*corev1.Pod){well}}}, want: v1alpha1.FindingOfFew},
		"Quarter":        {reason: "Five of twenty are a quarter.", pods: []group{{2, "n1", []func(*corev1.Pod){bad}}, {3, "n2", []func(*corev1.Pod){bad}}, {15, "n3", []func(*corev1.Pod){well}}}},
		"NoneServes":     {reason: "Where none serves elsewhere either, the node is not known to be at fault.", pods: []group{{1, "n1", []func(*corev1.Pod){bad}}, {1, "n2", []func(*corev1.Pod){running(0)}}}, want: v1alpha1.FindingOfFew},
		"EvictedUncount": {reason: "Pods that were evicted are not of the slot any more.", pods: []group{{1, "n1", []func(*corev1.Pod){bad}}, {5, "n2", []func(*corev1.Pod){leaving}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pods []corev1.Pod
			for _, g := range tc.pods {
				for range g.n {
					p := pod(fmt.Sprintf("reco-a-%d", len(pods)), append([]func(*corev1.Pod){on(g.node)}, g.mods...)...)
					slim, err := Slim(&p)
					if err != nil {
						t.Fatal(err)
					}
					pods = append(pods, *slim.(*corev1.Pod))
				}
			}
			got := Of(pods, container, nil, now)
			if len(got) != 1 || got[0].Reason != "CrashLooping" {
				t.Fatalf("%s: got %v", tc.reason, got)
			}
			if diff := cmp.Diff(tc.want, got[0].Extent); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
