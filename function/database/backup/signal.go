// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"time"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// SignalName is the NowName of a backup that a Signal asks for. No id of a spec has a slash.
func SignalName(s observev1alpha1.ActiveSignal) string { return NowName("signal/" + s.UID) }

// SignalFailure is the latest backup of a Signal that failed: the Signal, and when the Job began.
func SignalFailure(c *facts.Cluster) (signal string, began time.Time, failed bool) {
	for _, s := range c.Signals.Backups() {
		if at, _, bad := Failure(c.Observed[names.BackupNowPrefix+SignalName(s)]); bad && at.After(began) {
			signal, began, failed = s.Name, at, true
		}
	}
	return signal, began, failed
}
