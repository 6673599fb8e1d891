// SPDX-License-Identifier: Apache-2.0

package decision

import (
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/switchover"
)

// Switchover for the Topology: the requested one, as soon as it can begin, or the last one, so that nothing changes when it is
// done.
func (s *Decision) Switchover() *observev1alpha1.TopologySwitchover {
	h := switchover.Handed(s.Cluster)
	switch {
	case s.Move != nil && s.Move.Asked:
		return h
	case s.Move != nil && s.Move.Begin:
		return &observev1alpha1.TopologySwitchover{ID: s.Move.ID, From: s.Move.From, To: s.Move.To}
	case h != nil && switchover.Ended(s.Cluster, h.ID):
		return h
	default:
		return nil
	}
}
