// SPDX-License-Identifier: Apache-2.0

package members

import (
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/names"
)

// OtherGenerations than the active one. A generation that starts is composed as the active one is, and kept generations stay
// stopped.
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

// keepStopped stops members of a kept generation that run, and keeps all else.
func keepStopped(d *compose.Draft, s *decision.Decision) {
	Topology(d, s)
	for _, letter := range compose.SortedKeys(s.Sets) {
		d.Add(s.In(names.MemberPrefix+letter), same(s, letter), s.Side)
	}
}
