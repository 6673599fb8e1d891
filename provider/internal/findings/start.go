// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// What keeps a container from starting: no node, no Secret, no image, no valid configuration.

// placement of replicas.
var placement = podhealth.Placement{
	Who:     "a replica",
	Special: podhealth.WithoutDevice("a replica"),
	Remedies: []struct{ Word, Remedy string }{
		{"Insufficient cpu", "lower spec.resources.cpu"},
		{"Insufficient memory", "lower spec.resources.memory"},
		{"taint", "tolerate the taint in spec.pod.tolerations"},
		{"device class", "name a DeviceClass that exists in spec.resources.deviceRequest.deviceClassName"},
		{"node affinity", "correct spec.pod.nodeSelector"},
		{"node selector", "correct spec.pod.nodeSelector"},
		{"topology spread", "set spec.availability.zones to Preferred"},
		{"unschedulable", "uncordon nodes"},
		{"persistentvolumeclaim", "make the claim, or correct the claim in spec.model.uri"},
		{"unbound immediate PersistentVolumeClaims", "see the events of the claim: its storage class must be able to provide the volume"},
	},
}

// withoutSecrets finds a pod that waits for Secrets that are missing. No status says so: the kubelet reports only in events what
// it cannot mount. But it starts no container before.
func withoutSecrets(p *corev1.Pod, missing []string) []podhealth.Hindrance {
	if len(missing) == 0 || podhealth.Leaving(p) || !podhealth.Is(p, corev1.PodScheduled) {
		return nil
	}
	for _, st := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := st.State.Waiting
		if w == nil || (w.Reason != "ContainerCreating" && w.Reason != "PodInitializing") || st.LastTerminationState.Terminated != nil {
			return nil
		}
	}
	out := make([]podhealth.Hindrance, 0, len(missing))
	for _, name := range missing {
		out = append(out, podhealth.Hindrance{
			Reason: v1alpha1.ReasonConfigError,
			What:   fmt.Sprintf("Secret %q is missing, and the containers wait for it", name),
			Cause:  observev1alpha1.FindingOfRevision,
			Remedy: "make it, or correct the field of the spec that names it",
		})
	}
	return out
}

// imagePull finds a container whose image, or the image of its model, cannot be pulled.
func imagePull(s subject) *podhealth.Hindrance {
	image, remedies := s.Spec.Image, podhealth.SpecImage
	if w := s.Status.State.Waiting; w != nil {
		if v := s.volumeImage(w.Message); v != "" {
			image, remedies = v, each(podhealth.SpecImage, ofModel)
		}
	}
	if s.companion() {
		remedies = each(podhealth.SpecImage, func(string) string { return remedyCompanion })
	}
	return s.Pull(image, remedies)
}

// volumeImage is the image of a volume that a message about pulling is about, or "" when it is about the image of the container.
func (s subject) volumeImage(message string) string {
	for _, v := range s.Pod.Spec.Volumes {
		if v.Image != nil && v.Image.Reference != "" && v.Image.Reference != s.Spec.Image && strings.Contains(message, v.Image.Reference) {
			return v.Image.Reference
		}
	}
	return ""
}

// each remedy, put in other words.
func each(remedies podhealth.PullRemedies, in func(string) string) podhealth.PullRemedies {
	for i := range remedies {
		remedies[i] = in(remedies[i])
	}
	return remedies
}

// ofModel is a remedy for the image of a volume.
func ofModel(remedy string) string {
	return strings.ReplaceAll(remedy, "spec.image,", "spec.model.uri,") + " (spec.model.uri names the image)"
}

// userByName is how the kubelet quotes a user that may be root.
var userByName = regexp.MustCompile(`non-numeric user \(([^)]*)\)`)

// config finds a container that cannot be created from its configuration.
func config(s subject) *podhealth.Hindrance {
	h := s.Config("correct the container's fields of the spec")
	if h == nil {
		return nil
	}
	switch lower := strings.ToLower(h.Detail); {
	case strings.Contains(h.Detail, "runAsNonRoot"), strings.Contains(h.Detail, "non-root policy"):
		return root(words.Bounded(s.Spec.Image, words.MaxDetail), h.Detail)
	case strings.Contains(lower, "no command specified"):
		h.Remedy = "the image has no entrypoint: set spec.command"
	case strings.Contains(lower, "secret"):
		h.Remedy = "make the Secret or key, or correct spec.env"
	case strings.Contains(lower, "configmap"):
		h.Remedy = "make the ConfigMap or key, or correct spec.env"
	}
	return h
}

// root is a container whose image would run as root, or might.
func root(image, detail string) *podhealth.Hindrance {
	h := &podhealth.Hindrance{
		Reason: v1alpha1.ReasonRunsAsRoot,
		What:   fmt.Sprintf("image %q runs as root, which pods must not", image),
		Cause:  observev1alpha1.FindingOfRevision,
		Remedy: "set spec.pod.securityContext.runAsUser to a number above 0, or give the image a numeric USER",
	}
	if m := userByName.FindStringSubmatch(detail); m != nil {
		h.What = fmt.Sprintf("image %q runs as user %q, which may be root: its name does not show it", image, words.Bounded(m[1], words.MaxDetail))
	}
	return h
}
