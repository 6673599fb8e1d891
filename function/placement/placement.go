// SPDX-License-Identifier: Apache-2.0

// Package placement has what spec.pod and spec.podMetadata say of pods in the same fields for every kind: nodes, priority,
// labels and annotations.
package placement

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/allow"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// Apply a block to a pod, and after its tolerations the ones that the kind itself adds. A nil block adds only those.
func Apply(pod *applycorev1.PodSpecApplyConfiguration, s *v1alpha1.Scheduling, own ...corev1.Toleration) {
	if s == nil {
		s = &v1alpha1.Scheduling{}
	}
	for label, value := range s.NodeSelector {
		pod.WithNodeSelector(map[string]string{label: string(value)})
	}
	for _, t := range slices.Concat(s.Tolerations, own) {
		pod.WithTolerations(toleration(t))
	}
	if s.RuntimeClassName != "" {
		pod.WithRuntimeClassName(s.RuntimeClassName)
	}
	if s.PriorityClassName != "" {
		pod.WithPriorityClassName(s.PriorityClassName)
	}
}

func toleration(t corev1.Toleration) *applycorev1.TolerationApplyConfiguration {
	out := &applycorev1.TolerationApplyConfiguration{TolerationSeconds: t.TolerationSeconds}
	if t.Key != "" {
		out.WithKey(t.Key)
	}
	if t.Operator != "" {
		out.WithOperator(t.Operator)
	}
	if t.Value != "" {
		out.WithValue(t.Value)
	}
	if t.Effect != "" {
		out.WithEffect(t.Effect)
	}
	return out
}

// IsEmpty reports whether a block means the same as its absence.
func IsEmpty(s *v1alpha1.Scheduling) bool {
	return s == nil || len(s.NodeSelector) == 0 && len(s.Tolerations) == 0 && s.RuntimeClassName == "" && s.PriorityClassName == ""
}

// Check returns what is wrong with a block that its schema accepts: Kubernetes is stricter about labels and tolerations.
func Check(at *field.Path, s *v1alpha1.Scheduling) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(s.NodeSelector)) {
		errs = append(errs, metav1validation.ValidateLabelName(key, at.Child("nodeSelector"))...)
	}
	for i, t := range s.Tolerations {
		at := at.Child("tolerations").Index(i)
		if t.Operator != "" && t.Operator != corev1.TolerationOpEqual && t.Operator != corev1.TolerationOpExists {
			errs = append(errs, field.Invalid(at.Child("operator"), string(t.Operator), "must be Exists or Equal"))
		}
		if t.Key != "" {
			errs = append(errs, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
		}
		for _, remedy := range validation.IsValidLabelValue(t.Value) {
			errs = append(errs, field.Invalid(at.Child("value"), t.Value, remedy))
		}
	}
	return errs
}

// Lists of the platform's settings that bound a block. Setting is the path of the block that has the lists.
type Lists struct {
	Setting, Namespace           string
	PriorityClasses, Tolerations []inputv1alpha1.Allowed
}

// Allowed returns what a block names and the platform does not allow in the namespace.
func (l Lists) Allowed(at *field.Path, s *v1alpha1.Scheduling) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	refuse := func(at *field.Path, value, why string) {
		if why != "" {
			errs = append(errs, field.Invalid(at, value, why))
		}
	}
	list := func(name string, entries []inputv1alpha1.Allowed) allow.List {
		return allow.List{Setting: l.Setting + "." + name, Namespace: l.Namespace, Entries: entries}
	}
	if class := s.PriorityClassName; class != "" {
		refuse(at.Child("priorityClassName"), class, list("priorityClasses", l.PriorityClasses).Name(class))
	}
	for i, t := range s.Tolerations {
		refuse(at.Child("tolerations").Index(i), allow.Taints(t), list("tolerations", l.Tolerations).Toleration(t))
	}
	return errs
}
