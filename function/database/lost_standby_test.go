// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// TestStandbyLost: a standby that its leader has outrun is reported, and does not count as one.
func TestStandbyLost(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		lost   []int
	}{
		"One":  {"Another standby could become the leader, and it is reported all the same.", []int{2}},
		"Both": {"No standby is left.", []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			for _, i := range tc.lost {
				m, _ := compose.List(w.request.Observed[names.Topology].Map(), "status", "atProvider", "members")[i].(map[string]any)
				// The kubelet has not probed it since it was lost.
				m["ready"], m["role"] = true, observev1alpha1.RoleReplica
				m["state"], m["reason"], m["message"] = observev1alpha1.MemberStarting, "StandbyLost", "it is copied again"
			}
			p := w.plan()
			status, reason, message := condition(p, string(v1alpha1.TypeHighlyAvailable))
			if status != "False" || reason != "StandbyLost" {
				t.Errorf("%s: HighlyAvailable is %s %s: %s", tc.reason, status, reason, message)
			}
			st := told(t, p)
			if want := int32(3 - len(tc.lost)); st.ReadyReplicas != want {
				t.Errorf("%d members are ready, want %d", st.ReadyReplicas, want)
			}
			if st.Phase != v1alpha1.DatabaseDegraded {
				t.Errorf("the phase is %s", st.Phase)
			}
		})
	}
}

// TestUnheardMember: a member of which nothing is known does not count as ready, whatever its pod said last.
func TestUnheardMember(t *testing.T) {
	w := running(t, basic)
	seen(w, 2, observev1alpha1.MemberUnknown, true)
	p := w.plan()
	st := told(t, p)
	if st.ReadyReplicas != 2 || st.Phase != v1alpha1.DatabaseDegraded {
		t.Errorf("%d members are ready, and the phase is %s", st.ReadyReplicas, st.Phase)
	}
	if status, reason, message := condition(p, string(v1alpha1.TypeHighlyAvailable)); status != "True" || reason != "MembersMissing" {
		t.Errorf("HighlyAvailable is %s %s: %s", status, reason, message)
	}
}

// TestLeaderStarts: the member that holds the lock takes no writes while its container starts again.
func TestLeaderStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, state string
		ready         bool
		status, why   string
	}{
		"Runs":    {"It takes writes.", observev1alpha1.MemberRunning, true, "True", "Leading"},
		"Loaded":  {"A leader that is too slow for a probe takes writes.", observev1alpha1.MemberRunning, false, "True", "Leading"},
		"Unheard": {"A node may be lost to Kubernetes alone: the lock is renewed.", observev1alpha1.MemberUnknown, false, "True", "Leading"},
		"Starts":  {"Its container ended.", observev1alpha1.MemberStarting, false, "False", "NoLeader"},
		"Stopped": {"Its server ended.", observev1alpha1.MemberStopped, false, "False", "NoLeader"},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			seen(w, 0, tc.state, tc.ready)
			if status, reason, message := condition(w.plan(), string(v1alpha1.TypeAvailable)); status != tc.status || reason != tc.why {
				t.Errorf("%s: Available is %s %s: %s", tc.reason, status, reason, message)
			}
		})
	}
}

// seen is how a member is, by its place.
func seen(w *world, i int, state string, ready bool) {
	w.t.Helper()
	m, _ := compose.List(w.request.Observed[names.Topology].Map(), "status", "atProvider", "members")[i].(map[string]any)
	m["state"], m["ready"] = state, ready
}

// TestMembersApart: standbys do not hear from each other.
func TestMembersApart(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		members     int
		apart, out  []int
		status, why string
	}{
		"Three":     {"Without the leader neither of both is in a majority.", 3, []int{1, 2}, nil, "False", "MembersApart"},
		"ThreeOne":  {"The other one has not reported it yet.", 3, []int{2}, nil, "False", "MembersApart"},
		"Four":      {"Nor is one of both with the third.", 4, []int{2, 3}, nil, "False", "MembersApart"},
		"FourOut":   {"Three are left that hear from each other, and survive the loss of one.", 4, nil, []int{3}, "True", "MembersMissing"},
		"Five":      {"One of both is in a majority with the others.", 5, []int{3, 4}, nil, "True", "StandbyInSync"},
		"FiveOut":   {"Four are left.", 5, nil, []int{4}, "True", "MembersMissing"},
		"FiveZones": {"Two zones of two members are apart, and each is no majority without the leader.", 5, []int{1, 2, 3, 4}, nil, "False", "MembersApart"},
		"Seven":     {"So are two of three.", 7, []int{1, 2, 3, 4, 5, 6}, nil, "False", "MembersApart"},
		"ThreeOut":  {"Two are left.", 3, nil, []int{2}, "False", "TooFewMembers"},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, strings.Replace(group, "replicas: 3", fmt.Sprintf("replicas: %d", tc.members), 1))
			all := compose.List(w.request.Observed[names.Topology].Map(), "status", "atProvider", "members")
			for _, i := range append(tc.apart, tc.out...) {
				m, _ := all[i].(map[string]any)
				m["reason"], m["message"] = "MembersApart", "it does not hear from another one"
				if slices.Contains(tc.out, i) {
					m["state"], m["ready"] = observev1alpha1.MemberStarting, false
				}
			}
			status, reason, message := condition(w.plan(), string(v1alpha1.TypeHighlyAvailable))
			if status != tc.status || reason != tc.why || !strings.Contains(message, "does not hear from another one") {
				t.Errorf("%s: HighlyAvailable is %s %s: %s", tc.reason, status, reason, message)
			}
		})
	}
}
