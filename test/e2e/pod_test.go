// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// overlay of a pod: an init container and a sidecar that write into a volume, which the server serves.
func overlay(sidecar corev1.Container) func(*v1alpha1.Algorithm) {
	busybox := os.Getenv("CAPSTAN_BUSYBOX")
	mount := []corev1.VolumeMount{{Name: "data", MountPath: "/out"}}
	sidecar.Name, sidecar.Image, sidecar.VolumeMounts = "clock", busybox, mount
	return func(a *v1alpha1.Algorithm) {
		a.Spec.Image = busybox
		a.Spec.Command = []string{"httpd", "-f", "-p", "8080", "-h", "/data"}
		a.Spec.Pod = &v1alpha1.PodSpec{
			SecurityContext: &v1alpha1.PodSecurity{RunAsUser: new(int64(65532))},
			InitContainers: []v1alpha1.PodContainer{{Core: corev1.Container{
				Name: "features", Image: busybox, Command: []string{"sh", "-c", "echo prepared > /out/features"}, VolumeMounts: mount,
			}}},
			Containers: []v1alpha1.PodContainer{{Core: sidecar}},
			Volumes: []v1alpha1.PodVolume{{Core: corev1.Volume{
				Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
			}}},
		}
		a.Spec.VolumeMounts = []v1alpha1.PodVolumeMount{{Name: "data", MountPath: "/data", ReadOnly: true}}
		a.Spec.PodMetadata = &v1alpha1.PodMetadata{Labels: map[string]v1alpha1.LabelValue{"example.org/team": "reco"}}
	}
}

// TestPodOverlay runs a sidecar and an init container in a namespace that enforces the Pod Security Standard "restricted", edits
// one of them, and shows that what breaks the standard is refused without an effect on what runs.
func TestPodOverlay(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	running := func(text string) corev1.Container {
		return corev1.Container{Command: []string{"sh", "-c", "echo " + text + " > /out/clock; exec sleep 3600"}}
	}
	reco := func(sidecar corev1.Container) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", draining(drainSeconds), routed(host), overlay(sidecar))
	}
	create(t, reco(running("one")))
	eventually(t, "the server reads what the init container wrote", content(host, "/features", "prepared\n"))
	eventually(t, "the server reads what the sidecar wrote", content(host, "/clock", "one\n"))

	edit(t, reco(running("two")))
	within(t, 2*timeout, "an edit of the sidecar is a revision, which is live", content(host, "/clock", "two\n"))
	within(t, 2*timeout, "the one before is gone", alone(ns, "reco"))

	before := pods(t.Context(), t, ns, "reco")
	privileged := running("three")
	privileged.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	if err := apply(t.Context(), reco(privileged)); err == nil || !strings.Contains(err.Error(), "spec.pod.containers[0].securityContext.privileged") {
		t.Errorf("a privileged sidecar: want a refusal that names the field, got %v", err)
	}
	capable := running("four")
	capable.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN"}}}
	edit(t, reco(capable))
	eventually(t, "capabilities are refused", algorithmCondition(ns, "reco", v1alpha1.TypeAccepted, corev1.ConditionFalse,
		v1alpha1.ReasonInvalidSpec, "spec.pod.containers[0]", "NET_ADMIN", "restricted"))
	edit(t, algorithm(ns, "reco", draining(drainSeconds), routed(host), overlay(running("five")), func(a *v1alpha1.Algorithm) {
		a.Spec.Pod.Volumes[0].Core.VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
	}))
	eventually(t, "a folder of the node is refused", algorithmCondition(ns, "reco", v1alpha1.TypeAccepted, corev1.ConditionFalse,
		v1alpha1.ReasonInvalidSpec, "spec.pod.volumes[0].hostPath", "emptyDir"))
	if after := pods(t.Context(), t, ns, "reco"); !equal(before, after) {
		t.Errorf("pods before %v, after %v", before, after)
	}
	edit(t, reco(running("six")))
	within(t, 2*timeout, "a correct edit is live", content(host, "/clock", "six\n"))
}
