// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/images/demo-algorithm/load"
)

// gpuLent is a device of which the node has as many as the live revision uses.
const gpuLent = "example.com/lent"

// TestBorrowGPU promotes a second revision on a node that has no GPU left for it.
func TestBorrowGPU(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	advertise(t, nil, map[corev1.ResourceName]string{gpuLent: "2"})
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), sized(2), draining(drainSeconds), rolling(canary(50), baking(5*time.Minute)), func(a *v1alpha1.Algorithm) {
			// It bakes until the test ends, however late passes are.
			a.Spec.Resources.GPU, a.Spec.Resources.GPUCount = gpuLent, new(int32(1))
			a.Spec.Lifecycle.Capacity = v1alpha1.CapacityBorrow
		})
	}
	stable(t, reco("v1"))
	c := courseOf(t, ns, "reco")
	calls := callInside(t, ns, "caller", load.Options{
		URL: "http://reco/predict", Concurrency: 8, Rate: 60, Timeout: 10 * time.Second, NoKeepAlive: true,
	})
	most := mostPods(t, ns, "reco")

	edit(t, reco("v2"))
	within(t, 2*timeout, "half of the requests may reach v2", stepping(ns, "reco", 50))
	within(t, 3*timeout, "all traffic goes to v2", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	within(t, timeout, "v2 is live", live(ns, "reco", "v2"))
	within(t, 2*timeout, "v2 has both GPUs", func(context.Context) error {
		if n := len(podsIn(t, ns, "reco", "b")); n != 2 {
			return fmt.Errorf("%d pods of v2 have one", n)
		}

		return nil
	})
	c.took(t, v1alpha1.RolloutStable, v1alpha1.RolloutPreparing, v1alpha1.RolloutStepping, v1alpha1.RolloutPromoting, v1alpha1.RolloutBaking)
	if n := most(); n > 2 {
		t.Errorf("at most two pods should exist at a time, got %d", n)
	}
	lossless(t, "through the whole rollout", calls())
}

// mostPods counts the pods of an Algorithm that are not being deleted, until the result is read.
func mostPods(t *testing.T, ns, name string) func() int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var (
		most int
		wg   sync.WaitGroup
	)
	wg.Go(func() {
		for ctx.Err() == nil {
			list := &corev1.PodList{}
			err := kube.List(ctx, list, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/algorithm": name})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Logf("cannot list pods: %v", err)
			}
			n := 0
			for _, p := range list.Items {
				if p.DeletionTimestamp == nil {
					n++
				}
			}
			most = max(most, n)
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})

	return func() int {
		cancel()
		wg.Wait()

		return most
	}
}
