// SPDX-License-Identifier: Apache-2.0

package patroni

import "testing"

func TestCandidate(t *testing.T) {
	leader := Peer{Name: "a", Role: "leader", State: "running"}
	peer := func(name, role, state string, lag any) Peer {
		return Peer{Name: name, Role: role, State: state, Lag: lag}
	}
	cases := map[string]struct {
		reason   string
		peers    []Peer
		stopping []string
		want     string
	}{
		"Synchronous": {
			reason: "A synchronous member is taken even when another is as close.",
			peers:  []Peer{leader, peer("b", "replica", "streaming", 0.0), peer("c", "quorum_standby", "streaming", 10.0)}, want: "c",
		},
		"Closest": {
			reason: "Of several that are fit, the closest is taken.",
			peers:  []Peer{leader, peer("b", "quorum_standby", "streaming", 100.0), peer("c", "quorum_standby", "streaming", 10.0)}, want: "c",
		},
		"Alone":    {reason: "With one member there is nobody to take over.", peers: []Peer{leader}},
		"Starting": {reason: "A member that starts cannot take over at once.", peers: []Peer{leader, peer("b", "replica", "starting", "unknown")}},
		"Behind":   {reason: "A member that is far behind would need long.", peers: []Peer{leader, peer("b", "replica", "streaming", 1e9)}},
		"Unknown":  {reason: "A member whose lag is not known may be far behind.", peers: []Peer{leader, peer("b", "replica", "streaming", "unknown")}},
		"Stopping": {
			reason: "When the whole Database goes, nobody is left.",
			peers:  []Peer{leader, peer("b", "sync_standby", "streaming", 0.0), peer("c", "replica", "streaming", 0.0)}, stopping: []string{"a", "b", "c"},
		},
		"OneStops": {
			reason: "A member that stops as well is passed over.",
			peers:  []Peer{leader, peer("b", "quorum_standby", "streaming", 0.0), peer("c", "quorum_standby", "streaming", 9.0)}, stopping: []string{"a", "b"}, want: "c",
		},
		"Tagged": {
			reason: "A member that must not lead is passed over.",
			peers:  []Peer{leader, {Name: "b", Role: "replica", State: "streaming", Lag: 0.0, Tags: map[string]any{"nofailover": true}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Candidate(tc.peers, "a", tc.stopping); got != tc.want {
				t.Errorf("\n%s\nCandidate(...): got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
