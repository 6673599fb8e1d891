// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Devices of the node of this test: two whole GPUs, and a partition of one.
const (
	gpuDevice  = "example.com/gpu"
	gpuPart    = "example.com/mig-1g.10gb"
	gpuLabel   = "example.com/gpu.product"
	gpuProduct = "EX-100"
	// gpuOther is a GPU model that no node has.
	gpuOther = "EX-200"
)

// TestGPU advertises devices on a node, like a device plugin, and requests them.
func TestGPU(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	advertise(t)

	asking := func(name, device string, count int32, products ...v1alpha1.LabelValue) *v1alpha1.Algorithm {
		return algorithm(ns, name, func(a *v1alpha1.Algorithm) {
			a.Spec.Resources.GPU, a.Spec.Resources.GPUCount, a.Spec.Resources.GPUProducts = device, new(count), products
		})
	}
	create(t, asking("fits", gpuDevice, 1, gpuOther, gpuProduct))
	create(t, asking("part", gpuPart, 1))

	edit(t, asking("greedy", gpuDevice, 2, gpuProduct))
	edit(t, asking("second", gpuPart, 1))
	edit(t, asking("picky", gpuDevice, 1, gpuOther))
	eventually(t, "the status reports that no node has two left", algorithmCondition(ns, "greedy", v1alpha1.TypePodsHealthy, corev1.ConditionFalse,
		v1alpha1.ReasonInsufficientGPU, gpuDevice, "2", "spec.resources.gpuCount"))
	eventually(t, "the status reports that no part is left", algorithmCondition(ns, "second", v1alpha1.TypePodsHealthy, corev1.ConditionFalse,
		v1alpha1.ReasonInsufficientGPU, gpuPart, "spec.resources.gpu"))
	eventually(t, "the status reports that no node has that product", algorithmCondition(ns, "picky", v1alpha1.TypePodsHealthy, corev1.ConditionFalse,
		v1alpha1.ReasonUnschedulable, "node affinity"))

	// A deleted Algorithm releases its devices.
	if err := kube.Delete(t.Context(), algorithm(ns, "fits")); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "both devices go to who waits for them", ready(ns, "greedy", v1alpha1.PhaseReady, 1))
}

// advertise devices on the first node, until the test ends.
func advertise(t *testing.T) {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := kube.List(t.Context(), nodes); err != nil || len(nodes.Items) == 0 {
		t.Fatalf("cannot list nodes: %v", err)
	}
	name := nodes.Items[0].Name
	// In JSON, where null removes a field.
	set := func(ctx context.Context, label, whole, part string) error {
		node := &corev1.Node{}
		node.Name = name
		amounts := fmt.Sprintf(`{%q: %s, %q: %s}`, gpuDevice, whole, gpuPart, part)
		status := fmt.Sprintf(`{"status": {"capacity": %s, "allocatable": %s}}`, amounts, amounts)
		if err := kube.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, []byte(status))); err != nil {
			return err
		}
		labels := fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, gpuLabel, label)

		return kube.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(labels)))
	}
	t.Cleanup(func() {
		if err := set(context.Background(), "null", "null", "null"); err != nil {
			t.Errorf("cannot take the devices away: %v", err)
		}
	})
	if err := set(t.Context(), strconv.Quote(gpuProduct), `"2"`, `"1"`); err != nil {
		t.Fatalf("cannot advertise devices: %v", err)
	}
	eventually(t, "the node has the devices", func(ctx context.Context) error {
		node := &corev1.Node{}
		if err := kube.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		var lacking []string
		for _, device := range []corev1.ResourceName{gpuDevice, gpuPart} {
			if q := node.Status.Allocatable[device]; q.IsZero() {
				lacking = append(lacking, string(device))
			}
		}
		if len(lacking) > 0 {
			return fmt.Errorf("it lacks %s", strings.Join(lacking, ", "))
		}

		return nil
	})
}
