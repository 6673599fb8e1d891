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

// TestPodsOfCapstanAreClosed connects with the pods of the function and the provider from everywhere. All rules are on the side of what is
// reached, but for egress.
func TestPodsOfCapstanAreClosed(t *testing.T) {
	stranger := namespace(t)
	function, provider := runtimePods(t, "pkg.crossplane.io/function"), runtimePods(t, "pkg.crossplane.io/provider")
	if len(function) == 0 || len(provider) == 0 {
		t.Fatal("no pods of the function and the provider")
	}
	// A handshake of TLS that is none, which a server answers with an alert.
	answers := func(address string) string {
		return `test $(printf '\026\003\001\000\004\001\000\000\000' | timeout 5 nc ` + address + " | wc -c) -gt 0"
	}
	calls := func(p corev1.Pod) string { return answers(p.Status.PodIP + " 9443") }
	metrics := func(p corev1.Pod) string { return "timeout 5 wget -q -O - http://" + p.Status.PodIP + ":8080/metrics" }
	// Policies hold for a new pod only a moment after its start: what they admit is tried again, and what they refuse is tried late.
	again := func(command string) string {
		return "for i in 1 2 3 4 5 6 7 8 9 10; do " + command + " && exit 0; sleep 1; done; exit 1"
	}
	late := func(command string) string { return "sleep 10; " + command }
	// The address of the API server's Service is in the environment of every pod.
	apiserver := answers("$KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT")
	crossplane := map[string]string{"app": "crossplane"}

	cases := map[string]struct {
		reason  string
		ns      string
		labels  map[string]string
		command string
		want    bool
	}{
		"CrossplaneCalls": {
			reason: "Crossplane calls the function.",
			ns:     system, labels: crossplane, command: again(calls(function[0])), want: true,
		},
		"NeighbourCalls": {
			reason: "Another provider has a certificate of the same authority, and no business with the function.",
			ns:     system, command: calls(function[0]),
		},
		"StrangerCalls": {
			reason: "Nor has a pod of a tenant, with Crossplane's labels or without.",
			ns:     stranger, labels: crossplane, command: late(calls(function[0])),
		},
		"CrossplaneReadsMetrics": {
			reason: "The right to call does not open other ports.",
			ns:     system, labels: crossplane, command: late(metrics(function[0])),
		},
		"StrangerReadsMetricsOfTheFunction": {
			reason: "Metrics are for Prometheus.",
			ns:     stranger, command: metrics(function[0]),
		},
		"StrangerReadsMetricsOfTheProvider": {
			reason: "They name the Databases of all namespaces.",
			ns:     stranger, command: metrics(provider[0]),
		},
		"PrometheusReadsMetricsOfTheFunction": {
			reason: "The namespace that platform.yaml names may read them.",
			ns:     "monitoring", command: again(metrics(function[0])), want: true,
		},
		"PrometheusReadsMetricsOfTheProvider": {
			reason: "The namespace that platform.yaml names may read them.",
			ns:     "monitoring", command: again(metrics(provider[0])), want: true,
		},
		"FunctionConnects": {
			reason: "The function connects with nobody: a pod with its label cannot reach even the API server.",
			ns:     system, labels: map[string]string{"pkg.crossplane.io/function": functionName}, command: late(apiserver),
		},
		"OthersConnect": {
			reason: "A pod without that label can: it is the policy that refuses.",
			ns:     system, command: late(apiserver), want: true,
		},
	}
	t.Run("From", func(t *testing.T) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := caller(t, tc.ns, "closed-"+strings.ToLower(name), tc.command, func(p *corev1.Pod) { p.Labels = tc.labels })
				t.Cleanup(func() {
					if err := kube.Delete(context.Background(), p); err != nil {
						t.Errorf("cannot delete the pod %s: %v", p.Name, err)
					}
				})
				if got := ends(t, p); got != tc.want {
					t.Errorf("%s\ncommand %q succeeded: want %t, got %t", tc.reason, tc.command, tc.want, got)
				}
			})
		}
	})

	// The real Crossplane, through the same policies.
	create(t, algorithm(stranger, "reco"))
}
