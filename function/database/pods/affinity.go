// SPDX-License-Identifier: Apache-2.0

package pods

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// affinityOf a pod, to add to; it is made if there is none.
func affinityOf(pod *applycorev1.PodSpecApplyConfiguration) *applycorev1.AffinityApplyConfiguration {
	if pod.Affinity == nil {
		pod.WithAffinity(applycorev1.Affinity())
	}
	return pod.Affinity
}

// Apart from other pods if there is room, beside what the pod has of an affinity.
func Apart(pod *applycorev1.PodSpecApplyConfiguration, terms ...*applycorev1.WeightedPodAffinityTermApplyConfiguration) {
	affinityOf(pod).WithPodAntiAffinity(applycorev1.PodAntiAffinity().WithPreferredDuringSchedulingIgnoredDuringExecution(terms...))
}

// toNodes that the spec chooses.
func toNodes(pod *applycorev1.PodSpecApplyConfiguration, a *v1alpha1.NodeAffinity) {
	if a == nil {
		return
	}
	out := applycorev1.NodeAffinity()
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		selector := applycorev1.NodeSelector()
		for _, term := range r.NodeSelectorTerms {
			selector.WithNodeSelectorTerms(nodeTerm(term))
		}
		out.WithRequiredDuringSchedulingIgnoredDuringExecution(selector)
	}
	for _, p := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		out.WithPreferredDuringSchedulingIgnoredDuringExecution(applycorev1.PreferredSchedulingTerm().WithWeight(p.Weight).WithPreference(nodeTerm(p.Preference)))
	}
	affinityOf(pod).WithNodeAffinity(out)
}

func nodeTerm(t v1alpha1.NodeTerm) *applycorev1.NodeSelectorTermApplyConfiguration {
	out := applycorev1.NodeSelectorTerm()
	for _, e := range t.MatchExpressions {
		out.WithMatchExpressions(applycorev1.NodeSelectorRequirement().WithKey(e.Key).WithOperator(e.Operator).WithValues(texts(e.Values)...))
	}
	return out
}

// toPods that members are near to, and away from. Other pods of the Database are neither: a backup must not wait for room that members
// keep free.
func toPods(pod *applycorev1.PodSpecApplyConfiguration, s *facts.Cluster) {
	a := s.Affinity()
	if a == nil {
		return
	}
	if p := a.PodAffinity; p != nil {
		required, preferred := podTerms(p)
		affinityOf(pod).WithPodAffinity(applycorev1.PodAffinity().
			WithRequiredDuringSchedulingIgnoredDuringExecution(required...).WithPreferredDuringSchedulingIgnoredDuringExecution(preferred...))
	}
	if p := a.PodAntiAffinity; p != nil {
		required, preferred := podTerms(p)
		affinityOf(pod).WithPodAntiAffinity(applycorev1.PodAntiAffinity().
			WithRequiredDuringSchedulingIgnoredDuringExecution(required...).WithPreferredDuringSchedulingIgnoredDuringExecution(preferred...))
	}
}

func podTerms(p *v1alpha1.PodAffinity) (required []*applycorev1.PodAffinityTermApplyConfiguration, preferred []*applycorev1.WeightedPodAffinityTermApplyConfiguration) {
	for _, t := range p.RequiredDuringSchedulingIgnoredDuringExecution {
		required = append(required, podTerm(t))
	}
	for _, t := range p.PreferredDuringSchedulingIgnoredDuringExecution {
		preferred = append(preferred, applycorev1.WeightedPodAffinityTerm().WithWeight(t.Weight).WithPodAffinityTerm(podTerm(t.PodAffinityTerm)))
	}
	return required, preferred
}

// podTerm names no namespaces, so that it selects pods of the Database's own.
func podTerm(t v1alpha1.PodAffinityTerm) *applycorev1.PodAffinityTermApplyConfiguration {
	selector := applymetav1.LabelSelector()
	for key, value := range t.LabelSelector.MatchLabels {
		selector.WithMatchLabels(map[string]string{key: string(value)})
	}
	for _, e := range t.LabelSelector.MatchExpressions {
		selector.WithMatchExpressions(applymetav1.LabelSelectorRequirement().
			WithKey(e.Key).WithOperator(metav1.LabelSelectorOperator(e.Operator)).WithValues(texts(e.Values)...))
	}
	return applycorev1.PodAffinityTerm().WithLabelSelector(selector).WithTopologyKey(t.TopologyKey)
}

func texts(values []v1alpha1.LabelValue) []string {
	out := make([]string, 0, len(values))
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}
