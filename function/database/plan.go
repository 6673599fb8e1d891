// SPDX-License-Identifier: Apache-2.0

// Package database plans one Database: from its spec and the objects that exist, what should exist and what is reported. It is
// pure, and knows nothing of gRPC or protobuf. Start reading at the steps in this file.
package database

import (
	"cmp"
	"slices"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/access"
	"github.com/capstan-dev/capstan/function/database/certificates"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/jobs"
	"github.com/capstan-dev/capstan/function/database/members"
	"github.com/capstan-dev/capstan/function/database/monitoring"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/network"
	"github.com/capstan-dev/capstan/function/database/pooler"
	"github.com/capstan-dev/capstan/function/database/report"
	"github.com/capstan-dev/capstan/function/release"
)

// composing an accepted spec: the objects that it becomes, in order.
func composing(d *compose.Draft, s *decision.Pass) {
	c := s.Cluster
	forgotten(d, c)
	access.Credential(d, c, s.Remember)
	certificates.Compose(d, c)
	members.Topology(d, s.Decision)
	members.Account(d, c)
	members.Config(d, s.Decision)
	network.Services(d, c)
	pooler.Compose(d, c)
	network.External(d, c)
	jobs.Backups(d, c)
	members.Storage(d, c)
	members.Compose(d, s.Decision, members.Missing(s))
	members.OtherGenerations(d, s)
	network.DisruptionBudget(d, s.Decision)
	network.Policy(d, c)
	jobs.Hooks(d, s.Decision)
	access.Logins(d, c)
	access.Consumers(d, c)
	monitoring.Monitor(d, c)
	monitoring.Rules(d, c)
}

// Planner of Databases, of the function of a release. It fails only for a composite resource that has no name or namespace;
// any mistake in a spec becomes a condition.
func Planner(own release.Release) compose.Planner {
	return func(r compose.Request) (*compose.Plan, error) {
		c, err := gather(r, own)
		if err != nil {
			return nil, err
		}
		s, d := &decision.Pass{Decision: &decision.Decision{Cluster: c}, Remember: cmp.Or(c.Pending, c.Told)}, compose.NewDraft(r, facts.Ready)
		// A spec that cannot be carried out changes nothing.
		if len(c.Problems) == 0 {
			s = decision.DecideAll(c)
			composing(d, s)
		}
		d.KeepRest()
		return report.Plan(s, d), nil
	}
}

// forgotten removes objects of generations that the memory no longer names. Their volumes stay.
func forgotten(d *compose.Draft, s *facts.Cluster) {
	stay := s.Generations()
	for resource := range s.Observed {
		if g, ok := names.GenerationOf(resource); ok && !slices.Contains(stay, g) {
			d.Remove(resource)
		}
	}
}
