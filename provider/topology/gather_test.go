// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

var ofOrders = types.NamespacedName{Namespace: "shop", Name: "orders-db"}

// seenWith a leader, orders-db-a, and two followers.
func seenWith(change ...func(*v1alpha1.TopologyObservation)) v1alpha1.TopologyObservation {
	o := v1alpha1.TopologyObservation{
		Phase: v1alpha1.TopologyRunning, Leader: "orders-db-a", Timeline: 1, SystemIdentifier: "7", Zones: []string{"a", "b", "c"}, Nodes: 3,
		Volumes: []string{"orders-db-a", "orders-db-b", "orders-db-c"}, Backup: &v1alpha1.BackupReport{Asked: true},
	}
	for _, letter := range []string{"a", "b", "c"} {
		m := v1alpha1.TopologyMember{
			Name: "orders-db-" + letter, Role: v1alpha1.RoleReplica, State: v1alpha1.MemberStreaming, Ready: true, Node: "node-" + letter, Zone: letter,
			Revision: "r1", VolumeSize: "50Gi", Version: "17.6", Disk: diskOK, Lag: v1alpha1.LagInSync, Volume: &v1alpha1.VolumeReport{UsedPercent: 10},
		}
		if letter == "a" {
			m.Role, m.State, m.Lag = v1alpha1.RoleLeader, v1alpha1.MemberRunning, ""
		}
		o.Members = append(o.Members, m)
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// fresh follower orders-db-c, of which nothing is known yet.
func fresh(o *v1alpha1.TopologyObservation) {
	o.Phase, o.Volumes = v1alpha1.TopologyDegraded, o.Volumes[:2]
	o.Members[2] = v1alpha1.TopologyMember{Name: "orders-db-c", State: v1alpha1.MemberStopped}
}

// copying follower: all that comes with a member is known of it, and it does not follow.
func copying(o *v1alpha1.TopologyObservation) {
	o.Phase = v1alpha1.TopologyDegraded
	m := &o.Members[2]
	m.State, m.Ready, m.Lag = v1alpha1.MemberStarting, false, v1alpha1.LagUnknown
}

func third(change func(*v1alpha1.TopologyMember)) func(*v1alpha1.TopologyObservation) {
	return func(o *v1alpha1.TopologyObservation) { change(&o.Members[2]) }
}

// unborn Database: nobody ever led.
func unborn(o *v1alpha1.TopologyObservation) {
	*o = v1alpha1.TopologyObservation{Phase: v1alpha1.TopologyEmpty, Zones: o.Zones, Nodes: o.Nodes}
}

func TestHurries(t *testing.T) {
	type change = func(*v1alpha1.TopologyObservation)
	for name, tc := range map[string]struct {
		reason  string
		was, is []change
		want    bool
	}{
		"First":     {"Whoever waits for a first word waits for all of it.", []change{func(o *v1alpha1.TopologyObservation) { *o = v1alpha1.TopologyObservation{} }}, nil, true},
		"Arrives":   {"A member comes up, and does not follow yet.", []change{fresh}, []change{copying}, false},
		"IsMade":    {"One that nobody knew of comes up.", []change{fresh, func(o *v1alpha1.TopologyObservation) { o.Members = o.Members[:2] }}, []change{copying}, false},
		"Follows":   {"It can take over, and the next member waits for it.", []change{copying}, nil, true},
		"Bootstrap": {"Nobody led yet, and pods come.", []change{unborn}, []change{unborn, func(o *v1alpha1.TopologyObservation) { o.Phase = v1alpha1.TopologyBootstrapping }}, false},
		"Leads":     {"A first leader.", []change{unborn}, nil, true},
		"LeadMoves": {"Another leader.", nil, []change{func(o *v1alpha1.TopologyObservation) { o.Leader = "orders-db-b" }}, true},
		"LeadEnds": {
			"Nobody leads, whatever comes up meanwhile.",
			[]change{fresh, func(o *v1alpha1.TopologyObservation) { o.Phase, o.Leader = v1alpha1.TopologyNoLeader, "" }},
			[]change{copying, func(o *v1alpha1.TopologyObservation) { o.Phase, o.Leader = v1alpha1.TopologyNoLeader, "" }},
			true,
		},
		"Failover":   {"What became of a failover.", nil, []change{func(o *v1alpha1.TopologyObservation) { o.LastFailover = &v1alpha1.Failover{To: "orders-db-a"} }}, true},
		"Switchover": {"What became of a switchover.", nil, []change{func(o *v1alpha1.TopologyObservation) { o.Switchovers = []v1alpha1.SwitchoverOutcome{{ID: "s"}} }}, true},
		"NotReady":   {"It does not serve any more.", nil, []change{third(func(m *v1alpha1.TopologyMember) { m.Ready = false })}, true},
		"Fails":      {"It says why it does not start.", []change{fresh}, []change{copying, third(func(m *v1alpha1.TopologyMember) { m.Reason = "CrashLooping" })}, true},
		"Failed":     {"It does not start.", []change{fresh}, []change{copying, third(func(m *v1alpha1.TopologyMember) { m.State = v1alpha1.MemberFailed })}, true},
		"Lost":       {"Its pod is gone.", nil, []change{third(func(m *v1alpha1.TopologyMember) { m.Node = "" })}, true},
		"Removed":    {"The member is gone.", nil, []change{func(o *v1alpha1.TopologyObservation) { o.Members = o.Members[:2] }}, true},
		"Moved":      {"Its pod is another one, on another node.", nil, []change{third(func(m *v1alpha1.TopologyMember) { m.Node = "node-d" })}, true},
		"Full":       {"Its volume is full, which is its first word about it.", []change{fresh}, []change{copying, third(func(m *v1alpha1.TopologyMember) { m.Disk = "Full" })}, true},
		"Fills":      {"Its volume fills.", nil, []change{third(func(m *v1alpha1.TopologyMember) { m.Volume = &v1alpha1.VolumeReport{UsedPercent: 80} })}, true},
		"Grown":      {"Its volume has grown, which something waits for.", nil, []change{third(func(m *v1alpha1.TopologyMember) { m.VolumeSize = "60Gi" })}, true},
		"VolumeGone": {"A volume is gone.", nil, []change{func(o *v1alpha1.TopologyObservation) { o.Volumes = o.Volumes[:2] }}, true},
		"Archive": {"Archiving fails.", nil, []change{func(o *v1alpha1.TopologyObservation) {
			o.Backup = &v1alpha1.BackupReport{Asked: true, Archive: "Failing"}
		}}, true},
		"ZoneGone":    {"A zone takes no pods.", nil, []change{func(o *v1alpha1.TopologyObservation) { o.Zones = o.Zones[:2] }}, true},
		"StartsAgain": {"The server of a member starts that was there before.", []change{third(func(m *v1alpha1.TopologyMember) { m.State = v1alpha1.MemberStopped })}, []change{third(func(m *v1alpha1.TopologyMember) { m.State = v1alpha1.MemberStarting })}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hurries(seenWith(tc.was...), seenWith(tc.is...)); got != tc.want {
				t.Errorf("%s\nhurries(...) = %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestGatheringWrites follows a follower that comes up, a fact a second, and counts what is written.
func TestGatheringWrites(t *testing.T) {
	steps := []func(*v1alpha1.TopologyObservation){
		fresh,
		func(o *v1alpha1.TopologyObservation) { o.Volumes = append(o.Volumes, "orders-db-c") },
		third(func(m *v1alpha1.TopologyMember) { m.State, m.Revision = v1alpha1.MemberStarting, "r1" }),
		third(func(m *v1alpha1.TopologyMember) { m.Node, m.Zone = "node-c", "c" }),
		third(func(m *v1alpha1.TopologyMember) { m.VolumeSize = "50Gi" }),
		third(func(m *v1alpha1.TopologyMember) { m.Version = "17.6" }),
		third(func(m *v1alpha1.TopologyMember) { m.Disk, m.Volume = diskOK, &v1alpha1.VolumeReport{UsedPercent: 10} }),
		third(func(m *v1alpha1.TopologyMember) { m.Role = v1alpha1.RoleReplica }),
		third(func(m *v1alpha1.TopologyMember) { m.Lag = v1alpha1.LagUnknown }),
		func(o *v1alpha1.TopologyObservation) { *o = seenWith() },
	}
	g, at := newGathering(), now
	is := seenWith()
	wrote, writes := v1alpha1.TopologyObservation{}, []string{}
	look := func(what string) {
		if g.wait(ofOrders, wrote, is, at) == 0 && !equality.Semantic.DeepEqual(wrote, is) {
			wrote = *is.DeepCopy()
			writes = append(writes, what)
		}
	}
	for i, step := range steps {
		step(&is)
		look(strconv.Itoa(i))
		at = at.Add(time.Second)
	}

	// The first, one after five seconds, and that it follows.
	if want := []string{"0", "6", "9"}; fmt.Sprint(writes) != fmt.Sprint(want) {
		t.Errorf("written at steps %v, want %v", writes, want)
	}

	// What hurries nobody is told in the end, although nothing else comes.
	wrote.Backup = nil
	left := g.wait(ofOrders, wrote, is, at)
	if left != gatherFor {
		t.Errorf("it waits for %s, want %s", left, gatherFor)
	}
	if left := g.wait(ofOrders, wrote, is, at.Add(left)); left != 0 {
		t.Errorf("it waits for another %s", left)
	}
}
