// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	apisv1alpha1 "github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Settings are what a platform team decides for every Algorithm and Database of
// a control plane.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Settings struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Algorithm holds settings of the kind Algorithm.
	//
	// +optional
	Algorithm AlgorithmSettings `json:"algorithm,omitempty"`

	// Database holds settings of the kind Database.
	//
	// +optional
	Database DatabaseSettings `json:"database,omitempty"`
}

// AlgorithmSettings are what a platform team decides for every Algorithm.
type AlgorithmSettings struct {
	// CPU requested by a replica that does not say how much. Default: 250m.
	//
	// +kubebuilder:example="250m"
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// Memory requested and limited by a replica that does not say how much.
	// Default: 256Mi.
	//
	// +kubebuilder:example="256Mi"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// CompanionImage is the image of the program that downloads models and warms
	// replicas up. Without a tag it is that of the function's version. Default:
	// ghcr.io/capstan-dev/companion.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:example="registry.example.org/capstan-dev/companion"
	// +optional
	CompanionImage string `json:"companionImage,omitempty"`

	// Gateway of routes that name none. Default: none, so that each route has to
	// name its own.
	//
	// +kubebuilder:example={"name": "shared", "namespace": "gateway", "sectionName": "web"}
	// +optional
	Gateway *apisv1alpha1.GatewayReference `json:"gateway,omitempty"`

	// GatewayNamespaces are those whose pods serve Gateways. An Algorithm with a
	// route lets them in. With * it lets everybody in, for Gateways that are served
	// from outside the cluster. Default: the namespace of the route's Gateway.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +kubebuilder:example={"gateway"}
	// +optional
	GatewayNamespaces []string `json:"gatewayNamespaces,omitempty"`

	// Prometheus is the config that says where Prometheus is, for Algorithms that
	// name none. Default: the ClusterProviderConfig prometheus.
	//
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "prometheus"}
	// +optional
	Prometheus *xpv2.ProviderConfigReference `json:"prometheus,omitempty"`

	// MetricsNamespaces are those whose pods may scrape Algorithms, or * for
	// everybody. Default: monitoring.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +kubebuilder:example={"monitoring"}
	// +optional
	MetricsNamespaces []string `json:"metricsNamespaces,omitempty"`

	// MLflow is the config that says where the model registry is, for models that
	// name none. Default: the ClusterProviderConfig mlflow.
	//
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "mlflow"}
	// +optional
	MLflow *xpv2.ProviderConfigReference `json:"mlflow,omitempty"`
}
