// SPDX-License-Identifier: Apache-2.0

package members

import (
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/names"
)

// OtherGenerations than the active one: the one that comes up is composed as the active is, and those that are kept stay as they
// are, stopped.
func OtherGenerations(d *compose.Draft, s *decision.Pass) {
	for _, g := range compose.SortedKeys(s.Siblings) {
		t := s.Siblings[g]
		switch step := s.Memory.Step; {
		case step != nil && g == step.To:
			Topology(d, t)
			Account(d, t.Cluster)
			Config(d, t)
			Storage(d, t.Cluster)
			Compose(d, t, MissingFor(t.Cluster, s.Known && s.Pending != ""))
		case s.Memory.Keeps(g):
			keepStopped(d, t)
		}
	}
}

// keepStopped a generation that is kept: its members are stopped if one of them is not, and all else stays.
func keepStopped(d *compose.Draft, s *decision.Decision) {
	Topology(d, s)
	for _, letter := range compose.SortedKeys(s.Sets) {
		d.Add(s.In(names.MemberPrefix+letter), same(s, letter), s.Side)
	}
}
