// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/order"
	"github.com/capstan-dev/capstan/function/database/podinputs"
	"github.com/capstan-dev/capstan/function/database/switchover"
)

// changeHash names the next change of members that serve: what they run, how many remain, and without either, a switchover or an
// upgrade.
func changeHash(s *facts.Cluster, target string, sit order.Situation, m *switchover.Move) string {
	key, value := "", ""
	switch {
	case m != nil && m.Own && len(sit.Outdated()) == 0 && len(sit.Surplus()) == 0:
		key, value = "switchover", m.ID
	case order.UpgradeNext(s, sit):
		key, value = "upgrade", s.Memory.Step.ID
	}
	return podinputs.ChangePrefix + podinputs.HashOf(s, target, key, value)
}
