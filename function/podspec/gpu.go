// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// GPUTolerations let pods run on nodes that are reserved for pods with their GPU, by a taint whose key is the resource. Nodes
// whose GPUs are cut into parts advertise the parts, and carry the taint of the whole.
func GPUTolerations(r *v1alpha1.Resources) []corev1.Toleration {
	resource := r.GPU
	if resource == "" {
		return nil
	}
	ts := []corev1.Toleration{{Key: resource, Operator: corev1.TolerationOpExists}}
	if whole := gpuVendor(resource) + "/gpu"; whole != resource {
		ts = append(ts, corev1.Toleration{Key: whole, Operator: corev1.TolerationOpExists})
	}
	return ts
}

// GPUAffinity to nodes whose GPU is one of the products that will do.
func GPUAffinity(r *v1alpha1.Resources) *applycorev1.AffinityApplyConfiguration {
	if r.GPU == "" || len(r.GPUProducts) == 0 {
		return nil
	}
	products := make([]string, 0, len(r.GPUProducts))
	for _, p := range r.GPUProducts {
		products = append(products, string(p))
	}
	return applycorev1.Affinity().WithNodeAffinity(applycorev1.NodeAffinity().
		WithRequiredDuringSchedulingIgnoredDuringExecution(applycorev1.NodeSelector().
			WithNodeSelectorTerms(applycorev1.NodeSelectorTerm().
				WithMatchExpressions(applycorev1.NodeSelectorRequirement().
					WithKey(gpuProductLabel(r.GPU)).
					WithOperator(corev1.NodeSelectorOpIn).
					WithValues(products...)))))
}

// gpuProductLabel is the label by which a vendor's tools name the product of a node's GPU.
func gpuProductLabel(resource string) string {
	vendor := gpuVendor(resource)
	if vendor == "amd.com" {
		return vendor + "/gpu.product-name"
	}
	return vendor + "/gpu.product"
}

func gpuVendor(resource string) string {
	vendor, _, _ := strings.Cut(resource, "/")
	return vendor
}
