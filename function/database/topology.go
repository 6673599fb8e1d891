// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"slices"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// topologySpec without what the schema fills in. Only a switchover takes more than to observe.
type topologySpec struct {
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	ForProvider observev1alpha1.TopologyParameters `json:"forProvider"`
}

// topology watches the members. It is there from the first pass on, so that zones and nodes are known before there are members.
func topology(d *compose.Draft, s *decision) {
	names := make([]string, 0, len(letters))
	for _, letter := range s.expected() {
		names = append(names, s.member(letter))
	}
	for _, letter := range compose.SortedKeys(s.sets) {
		if name := s.member(letter); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	spec := topologySpec{ForProvider: observev1alpha1.TopologyParameters{
		Database:      s.base(),
		Scope:         s.scope(),
		Members:       names,
		Hibernated:    s.spec.Hibernated || s.fenced(),
		Switchover:    s.switchover(),
		RemoveSecrets: s.removable(),
	}}
	if spec.ForProvider.Switchover != nil {
		spec.ManagementPolicies = xpv2.ManagementPolicies{
			xpv2.ManagementActionObserve, xpv2.ManagementActionCreate, xpv2.ManagementActionUpdate, xpv2.ManagementActionDelete,
		}
	}
	d.Add(s.in(nameTopology), compose.NewManifest(observev1alpha1.TopologyGroupVersionKind.GroupVersion().String(), observev1alpha1.TopologyGroupVersionKind.Kind,
		s.metadata(s.base()), spec), s.side)
}

// removable Secrets are those of certificates, which can be made again.
func (s *cluster) removable() []string {
	// They are of the generation that clients are switched to.
	if s.side {
		return nil
	}
	names := []string{s.called(suffixOfMembers), s.called(suffixServer)}
	if s.archives() {
		names = append(names, s.called(suffixBackupClient))
	}
	if s.Observed[nameRepository] != nil {
		names = append(names, s.called(suffixRepositoryClient), s.called(suffixRepositoryServer))
	}
	return names
}

// observeTopology reads what a Topology tells, if it was looked at.
func observeTopology(o compose.Object) (observev1alpha1.TopologyObservation, bool) {
	var seen observev1alpha1.TopologyObservation
	if o == nil {
		return seen, false
	}
	raw, err := json.Marshal(compose.Map(o.Map(), "status", "atProvider"))
	if err != nil || json.Unmarshal(raw, &seen) != nil {
		return observev1alpha1.TopologyObservation{}, false
	}
	return seen, seen.Phase != ""
}

// expected letters of the members that the spec asks for. In a generation that comes up by an upgrade it is one, until clients
// are led there: the others copy it then.
func (s *cluster) expected() []string {
	if s.comesUpBy(stepUpgrade) {
		return letters[:1]
	}
	return letters[:min(int(s.spec.Replicas), len(letters))]
}

// seenMember is what the Topology tells of a member.
func (s *cluster) seenMember(letter string) observev1alpha1.TopologyMember {
	for _, m := range s.seen.Members {
		if m.Name == s.member(letter) {
			return m
		}
	}
	return observev1alpha1.TopologyMember{Name: s.member(letter), State: observev1alpha1.MemberUnknown, Lag: observev1alpha1.LagUnknown}
}

// letterOf a member, or nothing for a stranger.
func (s *names) letterOf(member string) string {
	letter, ok := strings.CutPrefix(member, s.memberPrefix())
	if !ok || !slices.Contains(letters, letter) {
		return ""
	}
	return letter
}

// leads reports whether a member takes writes, as far as is known.
func (s *cluster) leads() bool {
	return s.observed && s.seen.Leader != "" && s.seen.Phase != observev1alpha1.TopologyNoLeader
}
