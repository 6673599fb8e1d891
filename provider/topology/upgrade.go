// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// maxFindings bounds in bytes what PostgreSQL says of what stands in the way.
const maxFindings = 4096

// upgrade says how far the member is that upgrades the data: what its pod says, or while there is none what it said last.
func (v *view) upgrade() *v1alpha1.UpgradeReport {
	for _, name := range v.members() {
		p := v.pod(name)
		if p == nil {
			continue
		}
		var r v1alpha1.UpgradeReport
		if err := json.Unmarshal([]byte(p.GetAnnotations()[members.AnnotationUpgrade]), &r); err == nil && r.ID != "" {
			return &r
		}
	}
	return v.was.Upgrade
}

// steadyUpgrade is what is kept of what a member reports: bounded, because a program that may annotate a pod could write it, and without
// what changes with each try although nothing else does.
func steadyUpgrade(said string) string {
	var r v1alpha1.UpgradeReport
	if json.Unmarshal([]byte(said), &r) != nil {
		return ""
	}
	for _, field := range []*string{&r.ID, &r.Phase} {
		*field = words.Bounded(words.OneLine(*field), maxReason)
	}
	r.Message = words.Bounded(words.OneLine(r.Message), maxMessage)
	r.Findings = words.Bounded(words.OneLine(r.Findings), maxFindings)
	r.Checked, r.GapSeconds = "", max(r.GapSeconds, 0)
	if r.Phase == members.UpgradeIncompatible {
		r.GapSeconds = 0 // It is tried, and so measured, again every minute.
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return ""
	}
	return string(raw)
}
