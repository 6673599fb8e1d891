// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/memory"
)

// HashOf the revision that members should run, their number, and what else a change does, if anything.
func HashOf(s *facts.Cluster, target, key, value string) string {
	e := map[string]any{"revision": target, "replicas": s.Spec.Replicas}
	if key != "" {
		e[key] = value
	}
	return encoding.Hash(e)
}

// ChangePrefix keeps YAML from taking a hash for a number.
const ChangePrefix = "c"

// UpgradeHash is the change of the upgrade in progress, or "".
func UpgradeHash(s *facts.Cluster, target string) string {
	step := s.Memory.Step
	if step == nil || step.Kind != memory.StepUpgrade {
		return ""
	}
	return ChangePrefix + HashOf(s, target, "upgrade", step.ID)
}
