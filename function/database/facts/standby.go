// SPDX-License-Identifier: Apache-2.0

package facts

import (
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Follows reports whether the Database follows the archive of another one, or did before it was promoted. It never changes.
func (s *Cluster) Follows() bool {
	return s.Generation == 1 && s.Spec.From != nil && s.Spec.From.Backup != nil && s.Spec.From.Backup.Follow
}

// Standby reports whether the Database is a standby: it replays the archive of another one and takes no writes. While it is not known
// whether it was promoted, members stay what they are.
func (s *Cluster) Standby() bool {
	switch {
	case !s.Follows():
		return false
	case s.Known, s.Observed[s.In(names.DCS)] == nil:
		return s.Memory.Promoted == nil
	default:
		return s.Coordinated().Standby
	}
}

// BacksUp reports whether backups are taken now. A standby takes none: it archives nothing that they could be restored with.
func (s *Cluster) BacksUp() bool { return s.TakesBackups() && !s.Standby() }

// FollowReport is what the leader reports of the archive that the Database follows.
func (s *Cluster) FollowReport() observev1alpha1.FollowReport {
	if s.Seen.Following == nil {
		return observev1alpha1.FollowReport{}
	}
	return *s.Seen.Following
}
