// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

func TestLive(t *testing.T) {
	begun := time.Unix(1e9, 0)
	cases := map[string]struct {
		reason string
		state  func(*State)
		after  time.Duration
		live   bool
	}{
		"Running": {reason: "A loop that runs is well.", state: func(s *State) { s.Beat(begun, true, true) }, after: time.Hour, live: true},
		"Stale":   {reason: "A loop that stands still for a while may recover.", state: func(s *State) { s.Beat(begun, false, true) }, after: Sick - time.Second, live: true},
		"Sick":    {reason: "A loop that stands still for long does not.", state: func(s *State) { s.Beat(begun, false, true) }, after: Sick},
		"Storage": {reason: "A volume that hangs would hang for a new container, too.", state: func(s *State) { s.Beat(begun, false, false) }, after: time.Hour, live: true},
		"Held":    {reason: "A member that is held on purpose is well.", state: func(s *State) { s.Hold("x"); s.Beat(begun, false, true) }, after: time.Hour, live: true},
		"Again": {reason: "Standing still is counted again after a turn.", state: func(s *State) {
			s.Beat(begun.Add(-time.Hour), false, true)
			s.Beat(begun, true, true)
			s.Beat(begun, false, true)
		}, after: time.Second, live: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &State{}
			tc.state(s)
			if err := s.Live(begun.Add(tc.after)); (err == nil) != tc.live {
				t.Errorf("\n%s\nLive(...): %v, want live %v", tc.reason, err, tc.live)
			}
		})
	}
}

func TestWatch(t *testing.T) {
	begun := time.Unix(1e9, 0)
	type look struct {
		at            time.Duration
		silent, alive bool
	}
	well := func(at time.Duration) look { return look{at, false, true} }
	silent := func(at time.Duration) look { return look{at, true, false} }
	stale := func(at time.Duration) look { return look{at, false, false} }
	cases := map[string]struct {
		reason string
		looks  []look
		renew  bool
	}{
		"Well":      {reason: "Nothing is wrong.", looks: []look{well(5 * time.Second), well(time.Hour)}},
		"Starts":    {reason: "It takes its time to begin.", looks: []look{silent(5 * time.Second), silent(Begin - time.Second)}},
		"NeverUp":   {reason: "It does not begin.", looks: []look{silent(5 * time.Second), silent(Begin)}, renew: true},
		"Frozen":    {reason: "It answered and is silent.", looks: []look{well(5 * time.Second), silent(13 * time.Second), silent(21 * time.Second), silent(29 * time.Second)}, renew: true},
		"Thawed":    {reason: "After a freeze of all, one look that fails is not enough.", looks: []look{well(5 * time.Second), silent(time.Hour)}},
		"Stuck":     {reason: "It answers but its loop stands still.", looks: []look{well(5 * time.Second), stale(30 * time.Second), stale(60 * time.Second), stale(66 * time.Second)}, renew: true},
		"StuckSoon": {reason: "A loop may stand still for a while.", looks: []look{well(5 * time.Second), stale(30 * time.Second)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := NewWatch(begun)
			why := ""
			for _, l := range tc.looks {
				why = w.Look(begun.Add(l.at), l.silent, l.alive)
			}
			if (why != "") != tc.renew {
				t.Errorf("\n%s\nLook(...): %q, want again: %v", tc.reason, why, tc.renew)
			}
		})
	}
}
