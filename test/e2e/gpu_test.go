// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
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
	advertise(t, map[string]string{gpuLabel: gpuProduct}, map[corev1.ResourceName]string{gpuDevice: "2", gpuPart: "1"})

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

// advertise devices and labels on the first node, until the test ends.
func advertise(t *testing.T, labels map[string]string, devices map[corev1.ResourceName]string) {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := kube.List(t.Context(), nodes); err != nil || len(nodes.Items) == 0 {
		t.Fatalf("cannot list nodes: %v", err)
	}
	name := nodes.Items[0].Name
	// In JSON, where null removes a field.
	set := func(ctx context.Context, gone bool) error {
		amounts, named := map[corev1.ResourceName]*string{}, map[string]*string{}
		for device, n := range devices {
			if amounts[device] = &n; gone {
				amounts[device] = nil
			}
		}
		for key, value := range labels {
			if named[key] = &value; gone {
				named[key] = nil
			}
		}
		status, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": amounts, "allocatable": amounts}})
		if err != nil {
			return err
		}
		metadata, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": named}})
		if err != nil {
			return err
		}
		node := &corev1.Node{}
		node.Name = name
		if err := kube.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, status)); err != nil {
			return err
		}

		return kube.Patch(ctx, node, client.RawPatch(types.MergePatchType, metadata))
	}
	t.Cleanup(func() {
		if err := set(context.Background(), true); err != nil {
			t.Errorf("cannot take the devices away: %v", err)
		}
	})
	if err := set(t.Context(), false); err != nil {
		t.Fatalf("cannot advertise devices: %v", err)
	}
	eventually(t, "the node has the devices", func(ctx context.Context) error {
		node := &corev1.Node{}
		if err := kube.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		var lacking []string
		for device := range devices {
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
