// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the observers.
var GroupVersion = schema.GroupVersion{Group: "observe.capstan.dev", Version: "v1alpha1"}

// AnalysisGroupVersionKind is the type of an Analysis.
var AnalysisGroupVersionKind = GroupVersion.WithKind("Analysis")

// AutoscalerGroupVersionKind is the type of an Autoscaler.
var AutoscalerGroupVersionKind = GroupVersion.WithKind("Autoscaler")

// FlinkJobGroupVersionKind is the type of a FlinkJob.
var FlinkJobGroupVersionKind = GroupVersion.WithKind("FlinkJob")

// HookGroupVersionKind is the type of a Hook.
var HookGroupVersionKind = GroupVersion.WithKind("Hook")

// JobHistoryGroupVersionKind is the type of a JobHistory.
var JobHistoryGroupVersionKind = GroupVersion.WithKind("JobHistory")

// LineageGroupVersionKind is the type of a Lineage.
var LineageGroupVersionKind = GroupVersion.WithKind("Lineage")

// RunGroupVersionKind is the type of a Run.
var RunGroupVersionKind = GroupVersion.WithKind("Run")

// TopologyGroupVersionKind is the type of a Topology.
var TopologyGroupVersionKind = GroupVersion.WithKind("Topology")

// SchemeBuilder registers the types of this package.
var SchemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Analysis{}, &AnalysisList{}, &Autoscaler{}, &AutoscalerList{}, &FlinkJob{}, &FlinkJobList{}, &Hook{}, &HookList{}, &JobHistory{}, &JobHistoryList{}, &Lineage{}, &LineageList{}, &Run{}, &RunList{}, &Topology{}, &TopologyList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme adds the types of this package to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme
