// SPDX-License-Identifier: Apache-2.0

package report

import (
	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// ignores says why an act of a Signal has no effect.
func ignores(c *facts.Cluster, act eventsv1alpha1.Act) string {
	if act == eventsv1alpha1.ActBackup && !c.BacksUp() {
		return "the Database takes no backups: see the condition BackupFresh"
	}
	return ""
}
