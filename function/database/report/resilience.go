// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// topologySafe reports whether members are spread as the spec asks.
func topologySafe(s *decision.Pass) xpv2.Condition {
	placed := placed(s.Cluster)
	nodes := grouped(placed, func(m observev1alpha1.TopologyMember) string { return m.Node })
	zones := grouped(placed, func(m observev1alpha1.TopologyMember) string { return m.Zone })
	spread := v1alpha1.SpreadOverZones
	if s.Spec.Availability != nil {
		spread = s.Spec.Availability.Spread
	}
	// Where there are enough places, no place has more members than its fair share.
	crowd := func(groups map[string][]string, places int) bool {
		fair := (len(placed) + max(places, 1) - 1) / max(places, 1)
		return slices.ContainsFunc(slices.Collect(maps.Values(groups)), func(ms []string) bool { return len(ms) > fair })
	}
	switch n := int(s.Spec.Replicas); {
	case !s.HasTopology || len(placed) < n:
		return unknown(v1alpha1.ReasonSpreadUnknown, "the nodes of some members are not known yet: see the condition HighlyAvailable")
	case spread == v1alpha1.SpreadAnywhere:
		return yes(v1alpha1.ReasonSpread, "spec.availability.spread is None: the scheduler chose the nodes")
	case n == 1:
		return yes(v1alpha1.ReasonSpread, "there is one member")
	case len(nodes) == 1:
		return no(v1alpha1.ReasonOneNode, "all members are on one node, and its loss stops the Database: add nodes; members move when they are recreated")
	case spread == v1alpha1.SpreadOverZones && crowd(zones, len(s.Seen.Zones)) && len(s.Seen.Zones) > 0:
		return no(v1alpha1.ReasonZoneShared, "members share a zone although there are enough zones ("+shared(zones)+
			"): their volumes keep them there; to move one, see docs/database-runbook.md")
	case crowd(nodes, int(s.Seen.Nodes)):
		return no(v1alpha1.ReasonNodeShared, "members share a node although there are enough nodes ("+shared(nodes)+
			"): their volumes keep them there; to move one, see docs/database-runbook.md")
	case spread == v1alpha1.SpreadOverZones && len(s.Seen.Zones) > 0 && len(s.Seen.Zones) < n && len(s.Seen.Zones) < 2:
		return no(v1alpha1.ReasonTooFewZones, "the nodes that members can run on are in one zone, and its loss stops the Database: add nodes in other zones, or set spec.availability.spread to Nodes")
	default:
		return yes(v1alpha1.ReasonSpread, "members are spread as evenly as the cluster allows")
	}
}

func placed(s *facts.Cluster) []observev1alpha1.TopologyMember {
	return filtered(s.Seen.Members, func(m observev1alpha1.TopologyMember) bool { return m.Node != "" })
}

// grouped members by place. A member whose place is unknown is in no group.
func grouped(ms []observev1alpha1.TopologyMember, by func(observev1alpha1.TopologyMember) string) map[string][]string {
	groups := map[string][]string{}
	for _, m := range ms {
		if place := by(m); place != "" {
			groups[place] = append(groups[place], m.Name)
		}
	}
	return groups
}

func shared(groups map[string][]string) string {
	var words []string
	for _, place := range compose.SortedKeys(groups) {
		if len(groups[place]) > 1 {
			words = append(words, fmt.Sprintf("%s: %s", place, strings.Join(groups[place], ", ")))
		}
	}
	return strings.Join(words, "; ")
}

// resilience is what the loss of each member, node and zone would do, by the current places and lag of members.
func resilience(s *decision.Decision) *v1alpha1.Resilience {
	ms, r := placed(s.Cluster), &v1alpha1.Resilience{}
	if !s.Leads() || len(ms) == 0 {
		return nil
	}
	for _, kind := range []struct {
		name  string
		place func(observev1alpha1.TopologyMember) string
	}{
		{"member", func(m observev1alpha1.TopologyMember) string { return m.Name }},
		{"node", func(m observev1alpha1.TopologyMember) string { return m.Node }},
		{"zone", func(m observev1alpha1.TopologyMember) string { return m.Zone }},
	} {
		groups := grouped(ms, kind.place)
		if len(groups) == 0 {
			continue
		}
		before := len(r.Risks)
		for _, place := range compose.SortedKeys(groups) {
			if risk := without(s, groups[place]); risk != "" {
				r.Risks = append(r.Risks, fmt.Sprintf("the loss of %s %s %s", kind.name, place, risk))
			}
		}
		if len(r.Risks) == before {
			r.Survives = append(r.Survives, kind.name)
		}
	}
	// It stops no writes, and nothing else reports it.
	if s.TakesBackups() && backup.IsOnVolume(s.Cluster) {
		r.Risks = append(r.Risks, fmt.Sprintf("the loss of volume %s destroys all backups, because they are on one volume of this cluster", backup.RepositoryClaim(&s.Names)))
	}
	return r
}

// without some members: what happens to writes, or "" when they continue or recover by themselves.
func without(s *decision.Decision, lost []string) string {
	remain := func(m observev1alpha1.TopologyMember) bool { return !slices.Contains(lost, m.Name) }
	leader := slices.Contains(lost, s.Seen.Leader)
	candidates := len(filtered(candidates(s), remain))
	standbys := len(filtered(s.Seen.Members, func(m observev1alpha1.TopologyMember) bool {
		return remain(m) && m.Role != observev1alpha1.RoleLeader && m.State == observev1alpha1.MemberStreaming && m.Ready
	}))
	strict := s.Spec.Availability != nil && s.Spec.Availability.Durability == v1alpha1.DurabilityStrict && s.Spec.Replicas > 1
	switch {
	case s.Traits.Majority && losesMajority(s.Seen.Members, remain):
		return "stops writes until it is back, because the members that are left are no majority"
	case leader && s.Seen.Paused:
		return "stops writes, because failover is paused by hand"
	case leader && candidates == 0:
		return "stops writes until it is back, because no other member could become the leader"
	case leader && strict && standbys < 2, !leader && strict && standbys < 1:
		return "blocks commits until it is back, because spec.availability.durability is Strict and no standby would be left"
	default:
		return ""
	}
}

// losesMajority reports whether the running members that remain are no more than half of several.
func losesMajority(ms []observev1alpha1.TopologyMember, remain func(observev1alpha1.TopologyMember) bool) bool {
	group := filtered(ms, running)
	return len(group) > 1 && 2*len(filtered(group, remain)) <= len(group)
}
