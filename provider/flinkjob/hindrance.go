// SPDX-License-Identifier: Apache-2.0

package flinkjob

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// placement of pods.
var placement = podhealth.Placement{
	Who:     "a pod",
	Special: podhealth.WithoutDevice("a pod"),
	Remedies: []struct{ Word, Remedy string }{
		{"Insufficient cpu", "lower cpu in spec.resources and spec.flink.taskManagerResources"},
		{"Insufficient memory", "lower memory in spec.resources and spec.flink.taskManagerResources"},
		{"taint", "tolerate the taint in spec.pod.tolerations"},
		{"node affinity", "correct spec.pod.nodeSelector"},
		{"node selector", "correct spec.pod.nodeSelector"},
		{"unschedulable", "uncordon nodes"},
		{"persistentvolumeclaim", "make the claim that spec.flink.state names"},
		{"unbound immediate PersistentVolumeClaims", "see the events of the claim: its storage class must be able to provide the volume"},
	},
}

// ends of containers that start and end again.
var ends = podhealth.Ends{
	Unstartable: "correct spec.image: it must have Java",
	OutOfMemory: "raise memory in spec.resources and spec.flink.taskManagerResources",
	Killed:      "see the events of the pods",
	Exit: func(code int32) (what, remedy string) {
		return fmt.Sprintf("the container ends with exit code %d", code), "see the logs of the pods"
	},
}

// hindrance of a pod, or nil.
func hindrance(p *corev1.Pod) *podhealth.Hindrance {
	if h := placement.Unscheduled(p); h != nil {
		return h
	}
	for _, s := range podhealth.Subjects(p) {
		for _, h := range []*podhealth.Hindrance{
			s.Pull(s.Spec.Image, podhealth.SpecImage), s.Config("see that the Secrets and ConfigMaps exist that the spec names"), s.Crash(ends),
		} {
			if h == nil {
				continue
			}
			if s.Status.Name != runner.Container {
				h.What += " (container " + words.Bounded(s.Status.Name, words.MaxDetail) + ")"
			}
			return h
		}
	}
	return nil
}
