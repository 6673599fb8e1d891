// SPDX-License-Identifier: Apache-2.0

package order

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

func TestWake(t *testing.T) {
	stopped := func(v View) View {
		v.Stopped, v.emptied, v.Ready, v.Node, v.Role, v.State = true, true, false, "", "", observev1alpha1.MemberStopped
		return v
	}
	led := func(v View) View { v = stopped(v); v.ledLast = true; return v }
	up := func(v View) View { v = v.starting(); v.Node = "node"; return v }
	asynchronous := func(s Situation) Situation { s.synchronous = false; return s }
	for name, tc := range map[string]struct {
		reason string
		sit    Situation
		want   []string
	}{
		"LeaderFirst":    {"The one that led last has every commit.", situated(stopped(follower("a")), led(follower("b")), stopped(follower("c"))), []string{"b"}},
		"Unknown":        {"Where nobody is known to have led all are, and members decide by their data.", situated(stopped(follower("a")), stopped(follower("b"))), []string{"a", "b"}},
		"Leads":          {"Once it leads, the others follow.", situated(leader("a"), stopped(follower("b")), stopped(follower("c"))), []string{"b", "c"}},
		"Asynchronous":   {"Where a failover may lose commits nobody gets the chance before.", asynchronous(situated(up(follower("a")), stopped(follower("b")))), nil},
		"Synchronous":    {"Where commits wait for others it may need their votes.", situated(up(follower("a")), stopped(follower("b"))), []string{"b"}},
		"NotScheduled":   {"Its pod has to be somewhere first.", situated(follower("a").starting(), stopped(follower("b"))), nil},
		"LeaderHindered": {"When it cannot start, the others are there for whoever decides.", situated(follower("a").stuck("Unschedulable"), stopped(follower("b"))), []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.sit.Decide().Start); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
