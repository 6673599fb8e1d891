// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"
	"slices"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// CanLead reports whether a member can become the leader at once: it has every commit, and its node takes pods.
func (s Situation) CanLead(v View) bool {
	return v.Exists && v.Expected && !v.Stopped && !v.Leading() && v.Healthy() && !v.Cordoned &&
		(!s.synchronous || v.Role == observev1alpha1.RoleSyncStandby)
}

// cannotLead is why a member cannot become the leader now, with the remedy, or "" when it can.
func (s Situation) cannotLead(to string) string {
	i := slices.IndexFunc(s.Views, func(v View) bool { return v.Name == to })
	switch {
	case i < 0:
		names := make([]string, 0, len(s.Views))
		for _, v := range s.Views {
			names = append(names, v.Name)
		}
		return fmt.Sprintf("spec.switchover.to: %q: is not one of the members %v: choose one of them, and another id", to, names)
	case s.CanLead(s.Views[i]):
		return ""
	}
	switch v := s.Views[i]; {
	case !v.Expected:
		return fmt.Sprintf("member %s will be removed: choose another member", to)
	case v.Blocked():
		return fmt.Sprintf("member %s is blocked: %s", to, v.Message)
	case !v.Healthy():
		return fmt.Sprintf("member %s is not ready, or does not have every commit yet: wait, or choose another member", to)
	case v.Cordoned:
		return fmt.Sprintf("member %s is on node %s, which is cordoned: choose another member, or run kubectl uncordon %s", to, v.Node, v.Node)
	default:
		return fmt.Sprintf("member %s is not a synchronous standby: wait, or choose another member", to)
	}
}

// Candidate for a move is the member that is named, or else the first that can lead; or why there is none.
func (s Situation) Candidate(from, to string) (candidate, why string) {
	switch i := slices.IndexFunc(s.Views, s.CanLead); {
	case to != "" && to == from:
		return to, "" // It is the leader already, which is recorded.
	case to != "":
		return to, s.cannotLead(to)
	case i < 0:
		return "", "no standby with every commit is on a node that accepts pods: wait, or raise spec.replicas"
	default:
		return s.Views[i].Name, ""
	}
}
