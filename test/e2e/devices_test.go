// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Devices of a DRA driver on the first node: one of each model.
const (
	dra        = "gpu.test"
	draModel   = "EX-100"
	draSmaller = "EX-50"
)

// TestDeviceClaims runs a DRA driver on a node, and claims its devices.
func TestDeviceClaims(t *testing.T) {
	t.Parallel()
	driver := &deviceDriver{}
	driver.start(t) // before there is a namespace, which is removed first: pods end once the driver has released their devices
	ns := namespace(t)
	asking := func(name, class string, count int64, selectors ...string) *v1alpha1.Algorithm {
		return algorithm(ns, name, func(a *v1alpha1.Algorithm) {
			r := &v1alpha1.DeviceRequest{DeviceClassName: class, Count: new(count)}
			for _, expression := range selectors {
				r.Selectors = append(r.Selectors, v1alpha1.DeviceSelector{CEL: v1alpha1.CELDeviceSelector{Expression: expression}})
			}
			a.Spec.Resources.DeviceRequest = r
		})
	}

	create(t, asking("fits", dra, 1, "device.attributes['"+dra+"'].model == '"+draModel+"'"))
	if driver.prepared.Load() == 0 {
		t.Error("a replica serves without a device: the driver was not asked to prepare a claim")
	}
	if got := allocated(t, ns, "fits"); got != "large" {
		t.Errorf("device: got %q, want the one that the selector chooses", got)
	}

	edit(t, asking("greedy", dra, 2))
	edit(t, asking("wrong", "gpu.none", 1))
	eventually(t, "the status reports that no node has two left", algorithmCondition(ns, "greedy", v1alpha1.TypePodsHealthy, corev1.ConditionFalse,
		v1alpha1.ReasonInsufficientGPU, "cannot allocate all claims", "spec.resources.deviceRequest"))
	eventually(t, "the status reports that there is no such class", algorithmCondition(ns, "wrong", v1alpha1.TypePodsHealthy, corev1.ConditionFalse,
		v1alpha1.ReasonUnschedulable, "gpu.none", "spec.resources.deviceRequest.deviceClassName"))

	// An expression that does not compile is refused by the API server, and the pods that serve stay.
	edit(t, asking("fits", dra, 1, "device.nothing("))
	eventually(t, "the status reports the refused claim", algorithmCondition(ns, "fits", v1alpha1.TypeComposed, corev1.ConditionFalse,
		v1alpha1.ReasonRefused, "ResourceClaimTemplate"))
	if got := allocated(t, ns, "fits"); got != "large" {
		t.Errorf("device after a wrong edit: got %q", got)
	}

	// A deleted Algorithm releases its device.
	if err := kube.Delete(t.Context(), algorithm(ns, "fits")); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "both devices go to who waits for them", ready(ns, "greedy", v1alpha1.PhaseReady, 1))
}

// allocated is the device of the one claim of an Algorithm.
func allocated(t *testing.T, ns, name string) string {
	t.Helper()
	claims := &resourcev1.ResourceClaimList{}
	if err := kube.List(t.Context(), claims, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/algorithm": name}); err != nil {
		t.Fatal(err)
	}
	if len(claims.Items) != 1 || claims.Items[0].Status.Allocation == nil || len(claims.Items[0].Status.Allocation.Devices.Results) != 1 {
		t.Fatalf("claims of %s: got %d, want one with one device", name, len(claims.Items))
	}
	return claims.Items[0].Status.Allocation.Devices.Results[0].Device
}

// A deviceDriver is the part of a DRA driver that a node needs. It prepares nothing: the devices do not exist.
type deviceDriver struct {
	// prepared claims so far.
	prepared atomic.Int64
}

// start the driver, until the test ends. The kubelet sees its folder where every node has it.
func (d *deviceDriver) start(t *testing.T) {
	t.Helper()
	folder := os.Getenv("CAPSTAN_KUBELET")
	if folder == "" {
		t.Fatal("CAPSTAN_KUBELET is not set: run this test by `make e2e`")
	}
	data := filepath.Join(kubeletplugin.KubeletPluginsDir, dra)
	outside := func(path string) string { return folder + strings.TrimPrefix(path, "/var/lib/kubelet") }
	if err := os.MkdirAll(outside(data), 0o750); err != nil {
		t.Fatal(err)
	}
	listen := func(_ context.Context, path string) (net.Listener, error) {
		if err := os.Remove(outside(path)); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		return net.Listen("unix", outside(path))
	}
	nodes := &corev1.NodeList{}
	if err := kube.List(t.Context(), nodes); err != nil || len(nodes.Items) == 0 {
		t.Fatalf("cannot list nodes: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	helper, err := kubeletplugin.Start(ctx, d,
		kubeletplugin.DriverName(dra), kubeletplugin.KubeClient(clients), kubeletplugin.NodeName(nodes.Items[0].Name),
		kubeletplugin.PluginDataDirectoryPath(data), kubeletplugin.PluginListener(listen), kubeletplugin.RegistrarListener(listen))
	if err != nil {
		cancel()
		t.Fatalf("cannot start the driver: %v", err)
	}
	class := &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: dra},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: "device.driver == '" + dra + "'"},
		}}},
	}
	t.Cleanup(func() {
		// Pods that have a device end once the driver has released it.
		if err := wait.PollUntilContextTimeout(context.Background(), time.Second, timeout, true, func(ctx context.Context) (bool, error) {
			claims := &resourcev1.ResourceClaimList{}
			err := kube.List(ctx, claims)
			return len(claims.Items) == 0, err
		}); err != nil {
			t.Errorf("claims of devices stay: %v", err)
		}
		helper.Stop()
		cancel()
		if err := client.IgnoreNotFound(kube.Delete(context.Background(), class)); err != nil {
			t.Error(err)
		}
		if err := kube.DeleteAllOf(context.Background(), &resourcev1.ResourceSlice{},
			client.MatchingFields{resourcev1.ResourceSliceSelectorDriver: dra}); err != nil {
			t.Error(err)
		}
	})
	if err := kube.Create(t.Context(), class); err != nil {
		t.Fatalf("cannot create the DeviceClass: %v", err)
	}
	device := func(name, model string) resourcev1.Device {
		return resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}}}
	}
	if err := helper.PublishResources(ctx, resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
		nodes.Items[0].Name: {Slices: []resourceslice.Slice{{Devices: []resourcev1.Device{device("large", draModel), device("small", draSmaller)}}}},
	}}); err != nil {
		t.Fatalf("cannot publish devices: %v", err)
	}
}

// PrepareResourceClaims of pods that are about to start on the node.
func (d *deviceDriver) PrepareResourceClaims(_ context.Context, claims []*resourcev1.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	out := map[types.UID]kubeletplugin.PrepareResult{}
	for _, c := range claims {
		d.prepared.Add(1)
		var result kubeletplugin.PrepareResult
		for _, r := range c.Status.Allocation.Devices.Results {
			result.Devices = append(result.Devices, kubeletplugin.Device{
				Requests: []string{r.Request}, PoolName: r.Pool, DeviceName: r.Device,
			})
		}
		out[c.UID] = result
	}
	return out, nil
}

// UnprepareResourceClaims of pods that have ended.
func (d *deviceDriver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	out := map[types.UID]error{}
	for _, c := range claims {
		out[c.UID] = nil
	}
	return out, nil
}

// HandleError of what runs in the background: without devices the test fails by itself.
func (*deviceDriver) HandleError(context.Context, error, string) {}
