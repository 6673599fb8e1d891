// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// VerifyDeadline is how long a verification may take. The program in its pod ends by itself half an hour earlier, to report why.
const VerifyDeadline = 12 * time.Hour

// Verifies reports whether backups are verified.
func Verifies(s *facts.Cluster) bool { return s.TakesBackups() && s.Spec.Backup.Verify != nil }

// verifyFile of this Database, or nil.
func verifyFile(s *facts.Cluster) *engine.Verify {
	if !Verifies(s) {
		return nil
	}
	f := &engine.Verify{Preload: s.Engine.Libraries(s.Fields())}
	for _, a := range s.Spec.Backup.Verify.Assertions {
		f.Assertions = append(f.Assertions, engine.Assertion(a))
	}
	if d := s.Spec.Backup.Verify.MaxRestoreTime; d != nil {
		f.MaxRestoreSeconds = max(1, int64(d.Seconds()))
	}
	return f
}

// VerifySchedule is the one in the spec, or once a week in the hours after those in which backups are taken.
func VerifySchedule(s *facts.Cluster) string {
	n := s.Hashed()
	minute := n % (hoursOfNight * 60)
	return cmp.Or(s.Spec.Backup.Verify.Schedule, fmt.Sprintf("%d %d * * %d", minute%60, hoursOfNight+minute/60, n/(hoursOfNight*60)%7))
}
