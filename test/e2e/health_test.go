// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestHealthTellsTheCause breaks Algorithms in the ways that people do and expects the condition PodsHealthy to name
// the cause and the field to correct.
func TestHealthTellsTheCause(t *testing.T) {
	registry := os.Getenv("CAPSTAN_REGISTRY")
	ns := namespace(t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "memory"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"limits.memory": resource.MustParse("4Gi")}},
	}
	if err := kube.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		modify func(*v1alpha1.Algorithm)
		reason xpv2.ConditionReason
		words  []string
	}{
		"image": {
			modify: func(a *v1alpha1.Algorithm) { a.Spec.Image = registry + "/no/such:1" },
			reason: v1alpha1.ReasonImagePullFailed,
			words:  []string{registry + "/no/such:1", "no such image", "spec.image"},
		},
		"gpu": {
			modify: func(a *v1alpha1.Algorithm) {
				a.Spec.Resources.GPU = "nvidia.com/gpu"
				a.Spec.Resources.GPUCount = ptr.To[int32](2)
			},
			reason: v1alpha1.ReasonInsufficientGPU,
			words:  []string{"nvidia.com/gpu", "2", "spec.resources"},
		},
		"crash": {
			modify: func(a *v1alpha1.Algorithm) {
				a.Spec.Image = os.Getenv("CAPSTAN_BUSYBOX")
				a.Spec.Pod = &v1alpha1.PodSpec{SecurityContext: &v1alpha1.PodSecurity{RunAsUser: ptr.To[int64](65532)}}
				a.Spec.Command = []string{"sh", "-c", "exit 3"}
			},
			reason: v1alpha1.ReasonCrashLooping,
			words:  []string{"3"},
		},
		"secret": {
			modify: func(a *v1alpha1.Algorithm) {
				a.Spec.Env = []v1alpha1.EnvVar{{
					Name: "TOKEN",
					ValueFrom: &v1alpha1.EnvVarSource{
						SecretKeyRef: &v1alpha1.KeyReference{Name: "no-such-secret", Key: "token"},
					},
				}}
			},
			reason: v1alpha1.ReasonConfigError,
			words:  []string{"no-such-secret"},
		},
		"root": {
			modify: func(a *v1alpha1.Algorithm) {
				a.Spec.Image = os.Getenv("CAPSTAN_BUSYBOX")
				a.Spec.Command = []string{"sleep", "1000"}
			},
			reason: v1alpha1.ReasonRunsAsRoot,
			words:  []string{"spec.pod.securityContext.runAsUser"},
		},
		"quota": {
			modify: func(a *v1alpha1.Algorithm) { a.Spec.Resources.Memory = new(resource.MustParse("8Gi")) },
			reason: v1alpha1.ReasonQuotaExceeded,
			words:  []string{"memory"},
		},
		"node": {
			modify: func(a *v1alpha1.Algorithm) {
				a.Spec.Pod = &v1alpha1.PodSpec{Scheduling: v1alpha1.Scheduling{NodeSelector: map[string]v1alpha1.LabelValue{"no.such/label": "here"}}}
			},
			reason: v1alpha1.ReasonUnschedulable,
			words:  []string{"spec.pod.nodeSelector"},
		},
	}
	for name, tc := range cases {
		if err := apply(t.Context(), algorithm(ns, name, tc.modify)); err != nil {
			t.Fatalf("cannot apply Algorithm %q: %v", name, err)
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			eventually(t, "the cause is reported", algorithmCondition(ns, name, v1alpha1.TypePodsHealthy, corev1.ConditionFalse, tc.reason, tc.words...))
		})
	}

	t.Run("MendedByAnEdit", func(t *testing.T) {
		create(t, algorithm(ns, "image"))
		eventually(t, "it is healthy", algorithmCondition(ns, "image", v1alpha1.TypePodsHealthy, corev1.ConditionTrue, v1alpha1.ReasonServing))
	})
}

// TestAdmission expects the API server to reject what the schema can reject, with a message that names field and bound.
func TestAdmission(t *testing.T) {
	ns := namespace(t)
	cases := map[string]struct {
		modify func(*v1alpha1.Algorithm)
		words  []string
	}{
		"GPUCountWithoutGPU": {
			modify: func(a *v1alpha1.Algorithm) { a.Spec.Resources.GPUCount = ptr.To[int32](1) },
			words:  []string{"spec.resources", "gpuCount needs gpu"},
		},
		"MinAboveMax": {
			modify: func(a *v1alpha1.Algorithm) { a.Spec.Scaling = &v1alpha1.Scaling{MinReplicas: 5, MaxReplicas: 2} },
			words:  []string{"spec.scaling", "minReplicas must not be above maxReplicas"},
		},
		"LongName": {
			modify: func(a *v1alpha1.Algorithm) { a.Name = strings.Repeat("a", 64) },
			words:  []string{"metadata.name", "63"},
		},
		"DottedName": {
			modify: func(a *v1alpha1.Algorithm) { a.Name = "reco.v2" },
			words:  []string{"metadata.name", "lower case"},
		},
		"NegativeReplicas": {
			modify: func(a *v1alpha1.Algorithm) { a.Spec.Replicas = ptr.To[int32](-1) },
			words:  []string{"spec.replicas", "greater than or equal to 0"},
		},
		"ImageWithBlank": {
			modify: func(a *v1alpha1.Algorithm) { a.Spec.Image = "reco 1" },
			words:  []string{"spec.image", "must be an image reference"},
		},
		"UnicodeVariable": {
			modify: func(a *v1alpha1.Algorithm) { a.Spec.Env = []v1alpha1.EnvVar{{Name: "größe", Value: "1"}} },
			words:  []string{"spec.env[0].name"},
		},
		"NegativeMemory": {
			modify: func(a *v1alpha1.Algorithm) { a.Spec.Resources.Memory = new(resource.MustParse("-1Gi")) },
			words:  []string{"spec.resources.memory", "at least 1Mi"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := apply(t.Context(), algorithm(ns, "bad", tc.modify))
			if err == nil {
				t.Fatal("the API server accepted it")
			}
			for _, w := range tc.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the refusal lacks %q: %v", w, err)
				}
			}
		})
	}

	t.Run("NamesThatOnlyDifferAtTheEnd", func(t *testing.T) {
		long := strings.Repeat("a", 62)
		for _, end := range []string{"b", "c"} {
			if err := apply(t.Context(), algorithm(ns, long+end)); err != nil {
				t.Fatal(err)
			}
		}
		for _, end := range []string{"b", "c"} {
			eventually(t, "Algorithm …"+end+" is Ready", ready(ns, long+end, v1alpha1.PhaseReady, 1))
		}
	})
}
