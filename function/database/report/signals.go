// SPDX-License-Identifier: Apache-2.0

package report

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// ignores says why an act of a Signal has no effect.
func ignores(c *facts.Cluster, act eventsv1alpha1.Act) string {
	if act == eventsv1alpha1.ActBackup && !c.BacksUp() {
		return "the Database takes no backups: see the condition BackupFresh"
	}
	return ""
}

// hooksPassed reports whether hooks of Signals passed, where the spec has some. Those around a change are a part of the change.
func hooksPassed(s *decision.Pass) xpv2.Condition {
	if len(s.SignalHooks()) == 0 {
		return xpv2.Condition{}
	}
	if failure := s.ToldRuns.Failure(); failure != "" {
		return compose.False(v1alpha1.TypeHooksPassed, v1alpha1.ReasonHookFailed, failure)
	}
	return compose.True(v1alpha1.TypeHooksPassed, v1alpha1.ReasonPassed, "no hook of a Signal has failed")
}
