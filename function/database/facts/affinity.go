// SPDX-License-Identifier: Apache-2.0

package facts

import "github.com/capstan-dev/capstan/apis/v1alpha1"

// Affinity of members without what says nothing, which means what its absence means; nil without one.
func (s *Cluster) Affinity() *v1alpha1.DatabaseAffinity {
	if s.Spec.Pod == nil || s.Spec.Pod.Affinity == nil {
		return nil
	}
	a := *s.Spec.Pod.Affinity
	if n := a.NodeAffinity; n != nil && n.RequiredDuringSchedulingIgnoredDuringExecution == nil && len(n.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		a.NodeAffinity = nil
	}
	for _, p := range []**v1alpha1.PodAffinity{&a.PodAffinity, &a.PodAntiAffinity} {
		if *p != nil && len((*p).RequiredDuringSchedulingIgnoredDuringExecution)+len((*p).PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
			*p = nil
		}
	}
	if a == (v1alpha1.DatabaseAffinity{}) {
		return nil
	}
	return &a
}

// NodeAffinity of all pods; nil without one.
func (s *Cluster) NodeAffinity() *v1alpha1.NodeAffinity {
	if a := s.Affinity(); a != nil {
		return a.NodeAffinity
	}
	return nil
}
