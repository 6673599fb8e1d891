// SPDX-License-Identifier: Apache-2.0

package facts

import (
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Follows reports whether the Database follows the archive of another one, or did before it was promoted. It never changes.
func (s *Cluster) Follows() bool {
	return s.Generation == 1 && s.Spec.From != nil && s.Spec.From.Backup != nil && s.Spec.From.Backup.Follow
}

// Standby reports whether the Database is a standby: it replays the archive of another one and takes no writes. Members that were promoted
// never become standbys again, also without the record of the promotion.
func (s *Cluster) Standby() bool {
	if !s.Follows() || s.Memory.Promoted != nil {
		return false
	}
	o := s.Observed[s.In(names.DCS)]
	began := o != nil && compose.Text(o.Map(), "metadata", "annotations", names.AnnotationConfig) != ""
	return !began || s.Coordinated().Standby
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
