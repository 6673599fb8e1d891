// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the composite resources and of the provider's configuration.
var GroupVersion = schema.GroupVersion{Group: "capstan.dev", Version: "v1alpha1"}

// Kinds of this package.
var (
	AlgorithmGroupVersionKind               = GroupVersion.WithKind("Algorithm")
	DatabaseGroupVersionKind                = GroupVersion.WithKind("Database")
	ExperimentGroupVersionKind              = GroupVersion.WithKind("Experiment")
	TrainingGroupVersionKind                = GroupVersion.WithKind("Training")
	PipelineGroupVersionKind                = GroupVersion.WithKind("Pipeline")
	ProviderConfigGroupVersionKind          = GroupVersion.WithKind("ProviderConfig")
	ClusterProviderConfigGroupVersionKind   = GroupVersion.WithKind("ClusterProviderConfig")
	ProviderConfigUsageGroupVersionKind     = GroupVersion.WithKind("ProviderConfigUsage")
	ProviderConfigUsageListGroupVersionKind = GroupVersion.WithKind("ProviderConfigUsageList")
)

// SchemeBuilder registers the types of this package.
var SchemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Algorithm{}, &AlgorithmList{},
		&Database{}, &DatabaseList{},
		&Experiment{}, &ExperimentList{},
		&Training{}, &TrainingList{},
		&Pipeline{}, &PipelineList{},
		&ProviderConfig{}, &ProviderConfigList{},
		&ClusterProviderConfig{}, &ClusterProviderConfigList{},
		&ProviderConfigUsage{}, &ProviderConfigUsageList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme adds the types of this package to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme
