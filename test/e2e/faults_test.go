// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestBadRevision gives a ready Algorithm a bad revision, in the ways that people do. The previous revision keeps its
// traffic; a revert or a correction fixes it.
func TestBadRevision(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	missing := os.Getenv("CAPSTAN_REGISTRY") + "/no/such:1"
	cases := map[string]struct {
		modify func(*v1alpha1.Algorithm)
		reason xpv2.ConditionReason
		words  []string
	}{
		"crash": {
			modify: func(a *v1alpha1.Algorithm) { a.Spec.Args = []string{"--error-rate=2"} },
			reason: v1alpha1.ReasonCrashLooping,
			words:  []string{"errorRate must be from 0 to 1"},
		},
		"image": {
			modify: func(a *v1alpha1.Algorithm) { a.Spec.Image = missing },
			reason: v1alpha1.ReasonImagePullFailed,
			words:  []string{missing, "spec.image"},
		},
		"secret": {
			modify: func(a *v1alpha1.Algorithm) {
				a.Spec.Env = append(a.Spec.Env, v1alpha1.EnvVar{Name: "TOKEN", ValueFrom: &v1alpha1.EnvVarSource{
					SecretKeyRef: &v1alpha1.KeyReference{Name: "no-such-secret", Key: "token"},
				}})
			},
			reason: v1alpha1.ReasonConfigError,
			words:  []string{"no-such-secret"},
		},
		"gpu": {
			modify: func(a *v1alpha1.Algorithm) {
				a.Spec.Resources.GPU = "nvidia.com/gpu"
				a.Spec.Resources.GPUCount = ptr.To[int32](1)
			},
			reason: v1alpha1.ReasonInsufficientGPU,
			words:  []string{"nvidia.com/gpu", "spec.resources"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reco := func(v string, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
				return algorithm(ns, name, append(modify, versioned(v), draining(drainSeconds))...)
			}
			create(t, reco("v1"))
			first := revisionOf(t, ns, name)
			w := witnessOf(t, ns, name)
			c := callers(t, ns, name, "", insideNew)

			edit(t, reco("v2", tc.modify))
			eventually(t, "the cause is reported", algorithmCondition(ns, name, v1alpha1.TypeUpdated, corev1.ConditionFalse, tc.reason,
				append(tc.words, "clients reach revision "+first)...))
			eventually(t, "it is degraded, and Ready", ready(ns, name, v1alpha1.PhaseDegraded, 1))
			eventually(t, "the pods with traffic are healthy", algorithmCondition(ns, name, v1alpha1.TypePodsHealthy, corev1.ConditionTrue, v1alpha1.ReasonServing))

			edit(t, reco("v1"))
			eventually(t, "v1 is what the spec describes", live(ns, name, "v1"))
			within(t, 2*timeout, "v2 is gone", alone(ns, name))
			if got := revisionOf(t, ns, name); got != first {
				t.Errorf("a revert should return to revision %s, got %s", first, got)
			}

			edit(t, reco("v3"))
			within(t, 2*timeout, "traffic goes to v3", live(ns, name, "v3"))
			// Nodes follow the Service a moment later. When the pods of v1 are gone, all clients have been with v3.
			within(t, 2*timeout, "v1 is gone", alone(ns, name))
			r := c.end(t)[insideNew]
			if _, ok := r.Versions["v2"]; ok || r.Versions["v3"] == nil {
				t.Errorf("v1 and v3 should answer, and never v2, got %v", r.Versions)
			}
			// Pods of the bad revision can restart and be replaced; those with traffic must not.
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.fewest < 1 || len(w.switches) != 2 || len(w.broken) > 0 {
				t.Errorf("never fewer than 1 endpoint, 1 switch and nothing broken are expected, got %d, %v, %v", w.fewest, w.switches, w.broken)
			}
		})
	}
}

// revisionOf an Algorithm that has the traffic.
func revisionOf(t *testing.T, ns, name string) string {
	t.Helper()
	revision := ""
	eventually(t, "the live revision is reported", func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
		if err != nil {
			return err
		}
		if err := algorithmCondition(ns, name, v1alpha1.TypeUpdated, corev1.ConditionTrue, v1alpha1.ReasonLive)(ctx); err != nil {
			return err
		}
		revision = a.Status.Revision.Live

		return nil
	})

	return revision
}
