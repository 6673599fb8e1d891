// SPDX-License-Identifier: Apache-2.0

// Package optional lists the kinds of objects that Capstan composes or reads only where the cluster serves them. The provider reports which
// it serves in an EnvironmentConfig, and the function reads it there.
package optional

import "k8s.io/apimachinery/pkg/runtime/schema"

// Config is the name of the EnvironmentConfig. Its data.kinds has a Boolean for each of Kinds, by its Key: whether the cluster
// serves it.
const Config = "capstan-kinds"

// Kinds that are optional.
func Kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"},
		{Group: "cert-manager.io", Version: "v1", Kind: "Issuer"},
		{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "GRPCRoute"},
		{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"},
		{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "Workload"},
		{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"},
		{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"},
		{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
		{Group: "observe.capstan.dev", Version: "v1alpha1", Kind: "Analysis"},
		{Group: "observe.capstan.dev", Version: "v1alpha1", Kind: "Autoscaler"},
		{Group: "observe.capstan.dev", Version: "v1alpha1", Kind: "FlinkJob"},
		{Group: "observe.capstan.dev", Version: "v1alpha1", Kind: "Hook"},
		{Group: "observe.capstan.dev", Version: "v1alpha1", Kind: "JobHistory"},
		{Group: "observe.capstan.dev", Version: "v1alpha1", Kind: "Lineage"},
		{Group: "observe.capstan.dev", Version: "v1alpha1", Kind: "Run"},
		{Group: "registry.capstan.dev", Version: "v1alpha1", Kind: "ModelAlias"},
		{Group: "registry.capstan.dev", Version: "v1alpha1", Kind: "ModelVersion"},
		{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaimTemplate"},
		{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"},
		{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotClass"},
	}
}

// Key of a kind in the data, such as gateway.networking.k8s.io/v1/HTTPRoute.
func Key(gvk schema.GroupVersionKind) string { return gvk.GroupVersion().String() + "/" + gvk.Kind }
