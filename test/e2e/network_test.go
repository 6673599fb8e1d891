// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// caller runs a shell command in a pod of the Pod Security Standard "restricted", with modifications.
func caller(t *testing.T, ns, name, command string, modify ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()

	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			AutomountServiceAccountToken:  new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   new(true),
				RunAsUser:      ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:    "sh",
				Image:   os.Getenv("CAPSTAN_BUSYBOX"),
				Command: []string{"sh", "-c", command},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	for _, m := range modify {
		m(p)
	}
	if err := kube.Create(t.Context(), p); err != nil {
		t.Fatalf("cannot create the pod %s: %v", name, err)
	}

	return p
}

// ends waits until a pod has ended and reports whether its command succeeded.
func ends(t *testing.T, p *corev1.Pod) bool {
	t.Helper()
	eventually(t, "pod "+p.Name+" ends", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("phase is %s", p.Status.Phase)
		}

		return nil
	})

	return p.Status.Phase == corev1.PodSucceeded
}

func TestNetworkPolicy(t *testing.T) {
	ns, stranger := namespace(t), namespace(t)
	create(t, algorithm(ns, "reco"))
	url := fmt.Sprintf("http://reco.%s.svc/predict", ns)

	cases := map[string]struct {
		reason  string
		ns      string
		command string
		want    bool
	}{
		"SameNamespace": {
			// NetworkPolicies are enforced for a new pod only a moment after its start.
			reason:  "Pods of the Algorithm's namespace may call it.",
			ns:      ns,
			command: "for i in 1 2 3 4 5 6 7 8 9 10; do timeout 5 wget -q -O - " + url + " && exit 0; sleep 1; done; exit 1",
			want:    true,
		},
		"OtherNamespace": {
			reason:  "Pods of another namespace may not.",
			ns:      stranger,
			command: "timeout 5 wget -q -O - " + url,
			want:    false,
		},
		"NameResolvesElsewhere": {
			reason:  "The stranger was refused by the policy and not by a lack of DNS.",
			ns:      stranger,
			command: fmt.Sprintf("nslookup reco.%s.svc.cluster.local", ns),
			want:    true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := caller(t, tc.ns, "caller-"+strings.ToLower(name), tc.command)
			if got := ends(t, p); got != tc.want {
				t.Errorf("%s\ncommand %q succeeded: want %t, got %t", tc.reason, tc.command, tc.want, got)
			}
		})
	}
}
