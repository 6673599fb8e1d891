// SPDX-License-Identifier: Apache-2.0

package members

import (
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/objects"
)

// Topology watches the members. It is there from the first pass on, so that zones and nodes are known before there are members.
func Topology(d *compose.Draft, s *decision.Decision) {
	listed := make([]string, 0, len(names.Letters))
	for _, letter := range s.Expected() {
		listed = append(listed, s.Member(letter))
	}
	for _, letter := range compose.SortedKeys(s.Sets) {
		if name := s.Member(letter); !slices.Contains(listed, name) {
			listed = append(listed, name)
		}
	}
	topology := objects.Managed(observev1alpha1.TopologyGroupVersionKind, s.Metadata(s.Base()), observev1alpha1.TopologyParameters{
		Database:      s.Base(),
		Scope:         s.Scope(),
		Members:       listed,
		Hibernated:    s.Spec.Hibernated || s.Fenced(),
		Switchover:    s.Switchover(),
		RemoveSecrets: removable(s.Cluster),
	})
	if sc := s.Scheduling(); sc != nil {
		nodes := map[string]string{}
		for key, value := range sc.NodeSelector {
			nodes[key] = string(value)
		}
		topology.Spec.ForProvider.NodeSelector, topology.Spec.ForProvider.Tolerations = nodes, sc.Tolerations
	}
	if a := s.NodeAffinity(); a != nil && a.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		topology.Spec.ForProvider.NodeTerms = nodeTerms(a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
	}
	// By its schema it only observes, and a switchover takes more.
	if topology.Spec.ForProvider.Switchover != nil {
		topology.Spec.ManagementPolicies = xpv2.ManagementPolicies{
			xpv2.ManagementActionObserve, xpv2.ManagementActionCreate, xpv2.ManagementActionUpdate, xpv2.ManagementActionDelete,
		}
	}
	d.Add(s.In(names.Topology), topology, s.Side)
}

// nodeTerms for the provider.
func nodeTerms(terms []v1alpha1.NodeTerm) []observev1alpha1.NodeTerm {
	out := make([]observev1alpha1.NodeTerm, 0, len(terms))
	for _, t := range terms {
		all := make([]observev1alpha1.NodeRequirement, 0, len(t.MatchExpressions))
		for _, e := range t.MatchExpressions {
			values := make([]string, 0, len(e.Values))
			for _, v := range e.Values {
				values = append(values, string(v))
			}
			all = append(all, observev1alpha1.NodeRequirement{Key: e.Key, Operator: e.Operator, Values: values})
		}
		out = append(out, observev1alpha1.NodeTerm{MatchExpressions: all})
	}
	return out
}

// removable are the Secrets of certificates, which cert-manager can issue again. The authority stays, as the volumes do, unless the
// Database is of a Preview: members that are made again for them trust each other by it.
func removable(s *facts.Cluster) []string {
	// They belong to the generation that clients are switched to.
	if s.Side {
		return nil
	}
	listed := []string{s.Called(names.SuffixOfMembers), s.Called(names.SuffixServer)}
	if backup.Archives(s) {
		listed = append(listed, s.Called(names.SuffixBackupClient))
	}
	if s.Observed[names.Repository] != nil {
		listed = append(listed, s.Called(names.SuffixRepositoryClient), s.Called(names.SuffixRepositoryServer))
	}
	if s.Pooled() {
		listed = append(listed, s.Called(names.SuffixPooler), s.Called(names.SuffixPoolerServer))
	}
	if s.PooledReaders() {
		listed = append(listed, s.Called(names.SuffixReaderCert), s.Called(names.SuffixReaderServerCert))
	}
	if s.Preview != "" {
		listed = append(listed, s.Called(names.SuffixCA))
	}
	return listed
}
