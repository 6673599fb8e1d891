// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/placement"
)

// checkAffinity finds labels that Kubernetes does not take, and required terms with which members or other pods of the Database find no node.
func checkAffinity(s *facts.Cluster) []check.Problem {
	a := s.Affinity()
	if a == nil {
		return nil
	}
	at := pod.Child("affinity")
	errs := nodeLabels(at.Child("nodeAffinity"), a.NodeAffinity)
	for _, side := range []struct {
		name  string
		block *v1alpha1.PodAffinity
		check func(*facts.Cluster, v1alpha1.PodAffinityTerm, labels.Selector) string
	}{
		{"podAffinity", a.PodAffinity, together}, {"podAntiAffinity", a.PodAntiAffinity, apart},
	} {
		if side.block == nil {
			continue
		}
		for i, t := range side.block.RequiredDuringSchedulingIgnoredDuringExecution {
			at := at.Child(side.name, required).Index(i)
			selector, wrong := termLabels(at, t)
			errs = append(errs, wrong...)
			if selector == nil {
				continue
			}
			if why := side.check(s, t, selector); why != "" {
				errs = append(errs, field.Invalid(at, selector.String(), why))
			}
		}
		for i, t := range side.block.PreferredDuringSchedulingIgnoredDuringExecution {
			_, wrong := termLabels(at.Child(side.name, preferred).Index(i).Child("podAffinityTerm"), t.PodAffinityTerm)
			errs = append(errs, wrong...)
		}
	}
	return check.Errors(errs)
}

const (
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

// nodeLabels that Kubernetes does not take.
func nodeLabels(at *field.Path, a *v1alpha1.NodeAffinity) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	keys := func(at *field.Path, t v1alpha1.NodeTerm) {
		for i, e := range t.MatchExpressions {
			errs = append(errs, metav1validation.ValidateLabelName(e.Key, at.Child("matchExpressions").Index(i).Child("key"))...)
		}
	}
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		for i, t := range r.NodeSelectorTerms {
			keys(at.Child(required, "nodeSelectorTerms").Index(i), t)
		}
	}
	for i, p := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		keys(at.Child(preferred).Index(i).Child("preference"), p.Preference)
	}
	return errs
}

// termLabels that Kubernetes does not take, and the selector of a term without any.
func termLabels(at *field.Path, t v1alpha1.PodAffinityTerm) (labels.Selector, field.ErrorList) {
	errs := metav1validation.ValidateLabelName(t.TopologyKey, at.Child("topologyKey"))
	at = at.Child("labelSelector")
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, key := range compose.SortedKeys(t.LabelSelector.MatchLabels) {
		errs = append(errs, metav1validation.ValidateLabelName(key, at.Child("matchLabels"))...)
		selector.MatchLabels[key] = string(t.LabelSelector.MatchLabels[key])
	}
	for i, e := range t.LabelSelector.MatchExpressions {
		errs = append(errs, metav1validation.ValidateLabelName(e.Key, at.Child("matchExpressions").Index(i).Child("key"))...)
		r := metav1.LabelSelectorRequirement{Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator)}
		for _, v := range e.Values {
			r.Values = append(r.Values, string(v))
		}
		selector.MatchExpressions = append(selector.MatchExpressions, r)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	out, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil { // Its parts are sound.
		return nil, field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())}
	}
	return out, nil
}

// together is why a term keeps members together that are spread. A member is near to itself, so the first one would find a node, and no
// other.
func together(s *facts.Cluster, t v1alpha1.PodAffinityTerm, selector labels.Selector) string {
	spread := s.Spec.Availability.Spread
	over := map[string]string{corev1.LabelHostname: "nodes"}
	if spread == v1alpha1.SpreadOverZones {
		over[corev1.LabelTopologyZone] = "zones"
	}
	what := over[t.TopologyKey]
	if what == "" || spread == v1alpha1.SpreadAnywhere || s.Spec.Replicas < 2 || !slices.ContainsFunc(members(s), selector.Matches) {
		return ""
	}
	return fmt.Sprintf("selects members of this Database, which are spread over %s (spec.availability.spread), so that only one of them would find a node: "+
		"select other pods, or move the term to %s", what, preferred)
}

// members by all labels that they have, also those that they get when they serve.
func members(s *facts.Cluster) []labels.Labels {
	letters := names.Letters[:min(int(s.Spec.Replicas), len(names.Letters))]
	all := make([]labels.Labels, 0, 3*len(letters))
	for _, letter := range letters {
		own := placement.Labels(s.Spec.PodMetadata)
		maps.Copy(own, s.MemberLabels(letter))
		own[observev1alpha1.LabelScope] = s.Scope()
		all = append(all, labels.Set(own))
		for _, role := range []string{observev1alpha1.RoleLabelLeader, observev1alpha1.RoleLabelReplica} {
			serving := maps.Clone(own)
			serving[observev1alpha1.LabelRole] = role
			all = append(all, labels.Set(serving))
		}
	}
	return all
}

// apart is why a term keeps pods of the Database away that have to run. Kubernetes applies it to those pods as well, although they have
// no such term.
func apart(s *facts.Cluster, _ v1alpha1.PodAffinityTerm, selector labels.Selector) string {
	others := s.OtherPods()
	for _, name := range compose.SortedKeys(others) {
		if name == names.PodsPooler && !s.Pooled() || name == names.PodsReaderPooler && !s.PooledReaders() {
			continue
		}
		if selector.Matches(labels.Set(others[name])) {
			return fmt.Sprintf("selects pods of this Database that are no members (%s), which would find no node beside members: "+
				"select members by app.kubernetes.io/name: %s, or applications by labels of their own", name, s.Traits.App)
		}
	}
	return ""
}
