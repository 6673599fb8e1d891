// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestMountedSecret changes Secrets of two Algorithms: one makes a new revision for it, and one reads its files again.
func TestMountedSecret(t *testing.T) {
	t.Parallel()

	t.Run("Rolling", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		host := hostOf(ns, "reco")
		// The server uses the file of the Secret as its model, so that its responses identify the content at its start.
		reco := algorithm(ns, "reco", draining(drainSeconds), routed(host), func(a *v1alpha1.Algorithm) {
			a.Spec.Secrets = []v1alpha1.MountedSecret{{Name: "license", Rotate: v1alpha1.RotateRolling}}
			a.Spec.Args = []string{"--model-file=/etc/secrets/license/" + modelFile}
		})
		edit(t, reco)
		eventually(t, "the missing Secret is reported", algorithmCondition(ns, "reco", v1alpha1.TypeUpdated, corev1.ConditionFalse,
			v1alpha1.ReasonAwaitingSecret, `"license"`, "spec.secrets"))
		if n := len(pods(t.Context(), t, ns, "reco")); n != 0 {
			t.Errorf("there are %d pods that could not start", n)
		}
		write := func(w weights) { secret(t, ns, "license", map[string][]byte{modelFile: []byte(w[modelFile])}) }
		v1, v2 := weightsOf("v1"), weightsOf("v2")
		write(v1)
		within(t, 2*timeout, "v1 is served", v1.serves(host))
		eventually(t, "it is Ready", ready(ns, "reco", v1alpha1.PhaseReady, 1))
		w := witnessOf(t, ns, "reco")
		c := callers(t, ns, "reco", host, outsideNew)
		began := time.Now()
		write(v2)
		within(t, 2*timeout, "v2 is served", v2.serves(host))
		t.Logf("a changed Secret is served, by a revision of its own, after %s", time.Since(began).Round(100*time.Millisecond))
		within(t, 2*timeout, "the one before is gone", alone(ns, "reco"))
		c.end(t)
		w.end(t, 2, 1)
	})

	t.Run("Restartless", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		host := hostOf(ns, "reco")
		reco := algorithm(ns, "reco", draining(drainSeconds), routed(host), func(a *v1alpha1.Algorithm) {
			a.Spec.Image, a.Spec.Pod = os.Getenv("CAPSTAN_BUSYBOX"), &v1alpha1.PodSpec{SecurityContext: &v1alpha1.PodSecurity{RunAsUser: new(int64(65532))}}
			a.Spec.Command = []string{"httpd", "-f", "-p", "8080", "-h", "/etc/secrets/license"}
			a.Spec.Secrets = []v1alpha1.MountedSecret{{Name: "license"}}
		})
		edit(t, reco)
		eventually(t, "the missing Secret is reported", algorithmCondition(ns, "reco", v1alpha1.TypePodsHealthy, corev1.ConditionFalse,
			v1alpha1.ReasonConfigError, `"license"`))
		secret(t, ns, "license", map[string][]byte{"key": []byte("one")})
		// The kubelet retries after a while.
		within(t, 3*timeout, "it is Ready", ready(ns, "reco", v1alpha1.PhaseReady, 1))
		eventually(t, "the content is read", content(host, "/key", "one"))
		before := pods(t.Context(), t, ns, "reco")
		began := time.Now()
		secret(t, ns, "license", map[string][]byte{"key": []byte("two")})
		within(t, 2*timeout, "the new content is read", content(host, "/key", "two"))
		t.Logf("a changed Secret is in the files of a running pod after %s", time.Since(began).Round(100*time.Millisecond))
		if after := pods(t.Context(), t, ns, "reco"); !equal(before, after) {
			t.Errorf("pods before %v, after %v", before, after)
		}
		eventually(t, "no revision was made", func(ctx context.Context) error {
			a, err := get(ctx, &v1alpha1.Algorithm{}, ns, "reco")
			if err == nil && len(a.Status.Revision.History) != 1 {
				err = fmt.Errorf("the revisions are %v", a.Status.Revision.History)
			}

			return err
		})
	})
}
