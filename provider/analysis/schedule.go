// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

// placement of replicas.
var placement = podhealth.Placement{
	Who:     "a replica",
	Special: withoutDevice,
	Remedies: []struct{ Word, Remedy string }{
		{"Insufficient cpu", "lower spec.resources.cpu"},
		{"Insufficient memory", "lower spec.resources.memory"},
		{"taint", "tolerate the taint in spec.scheduling.tolerations"},
		{"node affinity", "correct spec.scheduling.nodeSelector"},
		{"node selector", "correct spec.scheduling.nodeSelector"},
		{"topology spread", "set spec.availability.zones to Preferred"},
		{"unschedulable", "uncordon nodes"},
		{"persistentvolumeclaim", "make the claim, or correct spec.model.volume.claimName"},
		{"unbound immediate PersistentVolumeClaims", "see the events of the claim: its storage class must be able to provide the volume"},
	},
}

// withoutDevice tells of a replica that waits for a GPU.
func withoutDevice(p *corev1.Pod, objections []string, said string) *podhealth.Hindrance {
	for _, o := range objections {
		device, ok := strings.CutPrefix(o, "Insufficient ")
		if !ok || !strings.Contains(device, "/") {
			continue
		}

		return &podhealth.Hindrance{
			Reason: v1alpha1.ReasonInsufficientGPU,
			What:   fmt.Sprintf("no node has %s %s free for a replica: %s", asked(p, device), device, said),
			Remedy: "lower spec.resources.gpuCount, name another device in spec.resources.gpu, or add nodes that have it",
		}
	}

	return nil
}

// asked is how much of a device a pod wants.
func asked(p *corev1.Pod, device string) string {
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		if q, ok := c.Resources.Limits[corev1.ResourceName(device)]; ok {
			return q.String()
		}
	}

	return "enough"
}
