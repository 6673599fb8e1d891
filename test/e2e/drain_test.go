// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestDrain evicts the pods of an Algorithm like a drain of the node: one after the other, and clients do not notice.
func TestDrain(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := "reco." + ns + ".example.org"
	create(t, algorithm(ns, "reco", versioned("v1"), sized(2), draining(drainSeconds), routed(host)))
	eventually(t, "the Gateway serves it", answers(host, "/predict", 200))
	eventually(t, "the budget counts its pods", func(ctx context.Context) error {
		b, err := get(ctx, &policyv1.PodDisruptionBudget{}, ns, "reco-a")
		if err != nil {
			return err
		}
		if b.Status.DisruptionsAllowed != 1 || b.Status.ExpectedPods != 2 {
			return fmt.Errorf("%d of %d pods may go", b.Status.DisruptionsAllowed, b.Status.ExpectedPods)
		}

		return nil
	})
	pods := &corev1.PodList{}
	if err := kube.List(t.Context(), pods, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/algorithm": "reco"}); err != nil || len(pods.Items) != 2 {
		t.Fatalf("want 2 pods, got %d (%v)", len(pods.Items), err)
	}
	w := witnessOf(t, ns, "reco")
	c := callers(t, ns, "reco", host, outsideNew, outsideKept, insideNew)

	if err := evict(t.Context(), &pods.Items[0]); err != nil {
		t.Fatalf("the first pod may go: %v", err)
	}
	began := time.Now()
	if err := evict(t.Context(), &pods.Items[1]); !kerrors.IsTooManyRequests(err) {
		t.Errorf("the second pod has to stay while there is no other: got %v", err)
	}
	refused := 0
	eventually(t, "the second pod may go once another serves", func(ctx context.Context) error {
		err := evict(ctx, &pods.Items[1])
		if kerrors.IsTooManyRequests(err) {
			refused++
		}

		return err
	})
	serving := 0
	for uid := range w.podsOf("a") {
		if uid != pods.Items[0].UID && uid != pods.Items[1].UID {
			serving++
		}
	}
	if serving == 0 {
		t.Error("the second pod was evicted before there was another")
	}
	t.Logf("the second eviction was refused %d times, and allowed %s after the first", refused, time.Since(began).Round(100*time.Millisecond))
	eventually(t, "both pods are replaced", func(ctx context.Context) error {
		for _, p := range pods.Items {
			now := &corev1.Pod{}
			if err := kube.Get(ctx, client.ObjectKeyFromObject(&p), now); !kerrors.IsNotFound(err) && now.UID == p.UID {
				return errors.New(p.Name + " is still there")
			}
		}

		return ready(ns, "reco", v1alpha1.PhaseReady, 2)(ctx)
	})
	c.end(t)
	w.end(t, 4, 0)
}

func evict(ctx context.Context, p *corev1.Pod) error {
	return kube.SubResource("eviction").Create(ctx, p, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}})
}
