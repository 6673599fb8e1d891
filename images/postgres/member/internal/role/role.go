// SPDX-License-Identifier: Apache-2.0

// Package role knows whether this member is the leader. It labels the member's pod with its role and observes the leader's lock.
package role

import "sync/atomic"

// A Leadership is what is known of this member's role. Only the Labeler writes it.
type Leadership struct {
	// `leads` reports whether this member was the leader when last observed, cutOff whether it is a standby that lost its leader.
	leads, cutOff atomic.Bool
}

// IsLeader reports whether this member is the leader.
func (l *Leadership) IsLeader() bool { return l.leads.Load() }
