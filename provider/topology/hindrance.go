// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

// placement of members.
var placement = podhealth.Placement{
	Who:     "the pod",
	Special: withoutVolume,
	Remedies: []struct{ Word, Remedy string }{
		{"Insufficient cpu", "ask for less CPU"},
		{"Insufficient memory", "ask for less memory"},
		{"volume node affinity", "bring back a node that reaches the volume: it is bound to a zone or a node"},
		{"topology spread", "bring back or add a node, or zone, that has no member yet"},
		{"taint", "take away the taint"},
		{"unschedulable", "uncordon nodes"},
		{"Too many pods", "make room on the nodes"},
	},
}

// withoutVolume describes a member whose volume is what the scheduler waits for.
func withoutVolume(_ *corev1.Pod, _ []string, said string) *podhealth.Hindrance {
	if !strings.Contains(said, "unbound immediate PersistentVolumeClaims") && !strings.Contains(said, "persistentvolumeclaim") {
		return nil
	}
	return &podhealth.Hindrance{
		Reason: apis.ReasonVolumePending,
		What:   "the volume is not there yet: " + said,
		Remedy: "see the events of the claim: its storage class must be able to provide the volume",
	}
}

const (
	remedyImage  = "see that the image is there, and that the platform's settings name it"
	remedyConfig = "see that the Secrets and ConfigMaps that the pod names are there"
)

// images of members are the platform's.
var images = podhealth.PullRemedies{
	podhealth.PullReference: remedyImage,
	podhealth.PullMissing:   remedyImage,
	podhealth.PullAccess:    "see that the nodes have access to the registry",
	podhealth.PullNetwork:   "see that the nodes reach the registry",
	podhealth.PullPlatform:  "choose an image that is, or other nodes",
	podhealth.PullRoom:      "make room on the nodes",
	podhealth.PullRate:      "see that the nodes may pull as often as they need to",
}

// ends of the containers of members.
var ends = podhealth.Ends{
	Unstartable: "see that the image is the one that the platform's settings mean",
	OutOfMemory: "give it more memory",
	Killed:      "see the events of the pod for a failing probe",
	Exit: func(code int32) (what, remedy string) {
		return fmt.Sprintf("the container ends with exit code %d", code), "see the logs of the pod"
	},
}

// hindrance of the pod of a member, or nil. Containers beside the container of the server count only as long as they keep it from being
// ready.
func hindrance(p *corev1.Pod) *podhealth.Hindrance {
	if podhealth.Is(p, corev1.PodReady) {
		return nil
	}
	if h := placement.Unscheduled(p); h != nil {
		return h
	}
	for _, s := range podhealth.Subjects(p) {
		for _, h := range []*podhealth.Hindrance{s.Pull(s.Spec.Image, images), s.Config(remedyConfig), s.Crash(ends)} {
			if h == nil {
				continue
			}
			if s.Status.Name != container(p) {
				h.What += " (container " + s.Status.Name + ")"
			}
			return h
		}
	}
	return nil
}
