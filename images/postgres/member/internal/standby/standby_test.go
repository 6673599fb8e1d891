// SPDX-License-Identifier: Apache-2.0

package standby

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

// TestState of a standby over time: from its first look without a leader until it follows again.
func TestState(t *testing.T) {
	streams := patroni.State{Role: "replica", State: "running", Replication: "streaming"}
	alone := patroni.State{Role: "replica", State: "running"}
	t0 := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	var s state
	for i, step := range []struct {
		reason   string
		after    time.Duration
		state    patroni.State
		position string
		removed  bool
		archive  bool
		lost     bool
		copies   bool
	}{
		{"One that streams is well.", 0, streams, "0/1", false, false, false, false},
		{"One that only lost its leader is not lost.", 5 * time.Second, alone, "0/1", false, false, false, false},
		{"However long that takes.", 5 * time.Minute, alone, "0/1", false, false, false, false},
		{"The leader has removed what it needs.", 6 * time.Minute, alone, "0/2", true, false, true, false},
		{"What it has is replayed first.", 6*time.Minute + 14*time.Second, alone, "0/3", true, false, true, false},
		{"It stands, and there is nothing else.", 7 * time.Minute, alone, "0/3", true, false, true, true},
		{"With an archive it gets more time.", 7*time.Minute + 10*time.Second, alone, "0/3", true, true, true, false},
		{"Which runs out.", 9 * time.Minute, alone, "0/3", true, true, true, true},
		{"A try is no success.", 10 * time.Minute, streams, "0/3", true, true, true, true},
		{"The next look finds that.", 11 * time.Minute, alone, "0/3", true, true, true, true},
		{"While it is copied it is lost.", 11*time.Minute + time.Second, patroni.State{Role: "uninitialized", State: "creating replica"}, "0/3", true, true, true, true},
		{"It streams.", 12 * time.Minute, streams, "0/4", false, true, true, false},
		{"It streams still.", 13 * time.Minute, streams, "0/4", false, true, false, false},
	} {
		now := t0.Add(step.after)
		if s = s.next(step.state, now); !s.silent.IsZero() {
			s = s.at(step.position, step.removed, now)
		}
		if lost := !s.lost.IsZero(); lost != step.lost || s.copies(step.archive, now) != step.copies {
			t.Errorf("step %d: %s: lost is %t, copies is %t", i, step.reason, lost, s.copies(step.archive, now))
		}
	}
	if s := s.at("0/4", true, t0).next(patroni.State{Leads: true, Role: "primary"}, t0); !s.lost.IsZero() {
		t.Error("the leader is a lost standby")
	}
}

func TestBefore(t *testing.T) {
	pod := func(letter string, change func(*pods.Pod)) pods.Pod {
		p := pods.Pod{Name: letter + "-0", Member: letter, Started: true}
		change(&p)
		return p
	}
	lost := func(p *pods.Pod) { p.Reason = members.ReasonStandbyLost }
	for name, tc := range map[string]struct {
		reason string
		others []pods.Pod
		want   string
	}{
		"Alone":   {"Nobody else is lost.", []pods.Pod{pod("a", func(*pods.Pod) {})}, ""},
		"Copying": {"One is copied at a time, whatever its name.", []pods.Pod{pod("c", func(p *pods.Pod) { p.Copied = true })}, "c"},
		"Earlier": {"Of two that are lost the earlier is first.", []pods.Pod{pod("a", lost)}, "a"},
		"Later":   {"The later waits for this one.", []pods.Pod{pod("c", lost)}, ""},
		"Gone":    {"What a pod reported that is gone counts no more.", []pods.Pod{pod("a", func(p *pods.Pod) { lost(p); p.Stopping = true })}, ""},
		"Unheard": {"Nor of one that does not run.", []pods.Pod{pod("a", func(p *pods.Pod) { lost(p); p.Started = false })}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := before(append(tc.others, pod("b", lost)), "b-0"); got != tc.want {
				t.Errorf("%s: before(...): got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
