// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// mysqlPod is a pod of a member of MySQL, whose server is not in its first container.
func mysqlPod(letter string, s members.Status, change ...func(*corev1.Pod)) corev1.Pod {
	text := ""
	if s.State != "" {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		text = string(b)
	}
	return pod(letter, text, append([]func(*corev1.Pod){func(p *corev1.Pod) {
		p.Labels[labelApp] = "mysql"
		beside := corev1.ContainerStatus{Name: "proxy", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		p.Spec.Containers = []corev1.Container{{Name: "proxy", Image: "proxy:1"}, {Name: "mysql", Image: "mysql:9.7"}}
		p.Status.ContainerStatuses[0].Name = "mysql"
		p.Status.ContainerStatuses = append([]corev1.ContainerStatus{beside}, p.Status.ContainerStatuses...)
	}}, change...)...)
}

// ended is a server whose container ended.
func serverEnded(p *corev1.Pod) {
	unready(p)
	p.Status.ContainerStatuses[1].Ready = false
	p.Status.ContainerStatuses[1].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
}

var (
	mysqlLeads   = members.Status{State: members.StateRunning, Role: members.StatusPrimary, Timeline: 3}
	mysqlFollows = members.Status{
		State: members.StateRunning, Role: members.StatusReplica, Replication: members.Streaming, Synchronous: true, Lag: members.LagInSync,
	}
)

// mysqlWell is a Database of three members of MySQL.
func mysqlWell(change ...func(*view)) *view {
	return well(append([]func(*view){func(v *view) {
		v.pods = []corev1.Pod{mysqlPod("a", mysqlLeads), mysqlPod("b", mysqlFollows), mysqlPod("c", mysqlFollows)}
		v.records = map[string]map[string]string{
			members.SuffixLeader: {members.AnnotationLeader: "orders-db-a-0", members.AnnotationAcquired: "2026-11-22T07:00:00Z", members.AnnotationTransitions: "2"},
			members.SuffixConfig: {members.AnnotationInitialize: "7575"},
		}
		v.recalled = recollection{}
	}}, change...)...)
}

func TestFactsOfMySQL(t *testing.T) {
	wanted := func(change ...func(*v1alpha1.TopologyObservation)) v1alpha1.TopologyObservation {
		return want(append([]func(*v1alpha1.TopologyObservation){func(o *v1alpha1.TopologyObservation) {
			o.Members[2].Role = v1alpha1.RoleSyncStandby
		}}, change...)...)
	}
	noLeader := func(state string, change ...func(*v1alpha1.TopologyMember)) func(*v1alpha1.TopologyObservation) {
		return func(o *v1alpha1.TopologyObservation) {
			o.Phase, o.Leader, o.Timeline = v1alpha1.TopologyNoLeader, "", 3
			o.Members[0] = saw("a", "", state, v1alpha1.LagUnknown, change...)
		}
	}
	before := func(v *view) {
		v.was = v1alpha1.TopologyObservation{Timeline: 3, SystemIdentifier: "7575", Leader: "orders-db-a"}
	}
	cases := map[string]struct {
		reason string
		in     *view
		want   v1alpha1.TopologyObservation
	}{
		"Well": {reason: "One leads, and a commit waits for a majority, so that each of the others may lead.", in: mysqlWell(), want: wanted()},
		"Behind": {
			reason: "A class of lag is what the member says.",
			in: mysqlWell(func(v *view) {
				s := mysqlFollows
				s.Lag = members.LagFarBehind
				v.pods[1] = mysqlPod("b", s)
			}),
			want: wanted(func(o *v1alpha1.TopologyObservation) { o.Members[1].Lag = v1alpha1.LagFarBehind }),
		},
		"StrangeLag": {
			reason: "A word that is no class says nothing.",
			in: mysqlWell(func(v *view) {
				s := mysqlFollows
				s.Lag = "SomewhatBehind"
				v.pods[1] = mysqlPod("b", s)
			}),
			want: wanted(func(o *v1alpha1.TopologyObservation) { o.Members[1].Lag = v1alpha1.LagUnknown }),
		},
		"Asynchronous": {
			reason: "One that no commit waits for is a replica.",
			in: mysqlWell(func(v *view) {
				s := mysqlFollows
				s.Synchronous = false
				v.pods[1] = mysqlPod("b", s)
			}),
			want: wanted(func(o *v1alpha1.TopologyObservation) { o.Members[1].Role = v1alpha1.RoleReplica }),
		},
		"Joining": {
			reason: "One that has yet to follow may not lead, whatever it says.",
			in: mysqlWell(func(v *view) {
				v.pods[2] = mysqlPod("c", members.Status{State: members.StateRunning, Role: members.StatusReplica, Synchronous: true}, unready)
			}),
			want: wanted(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				o.Members[2] = saw("c", v1alpha1.RoleReplica, v1alpha1.MemberStarting, v1alpha1.LagUnknown, notReady)
			}),
		},
		"Restart": {
			reason: "Parameters that wait are named, sorted.",
			in: mysqlWell(func(v *view) {
				s := mysqlFollows
				s.PendingRestart = map[string]any{"innodb_ft_min_token_size": nil, "ft_min_word_len": nil}
				v.pods[2] = mysqlPod("c", s)
			}),
			want: wanted(func(o *v1alpha1.TopologyObservation) {
				o.Members[2].PendingRestart = []string{"ft_min_word_len", "innodb_ft_min_token_size"}
			}),
		},
		"SteppedDown": {
			reason: "The lock names it, and it says that it does not lead: there is no leader.",
			in: mysqlWell(before, func(v *view) {
				v.pods[0] = mysqlPod("a", members.Status{State: members.StateRunning, Role: members.StatusReplica}, unready)
			}),
			want: wanted(noLeader(v1alpha1.MemberStarting, notReady, func(m *v1alpha1.TopologyMember) {
				m.Role = v1alpha1.RoleReplica
			})),
		},
		"Ended": {
			reason: "Its server ended, whatever it said before.",
			in:     mysqlWell(before, func(v *view) { v.pods[0] = mysqlPod("a", mysqlLeads, serverEnded) }),
			want:   wanted(noLeader(v1alpha1.MemberStarting, notReady)),
		},
		"NodeLost": {
			reason: "Nobody renews the lock, so that its end is not told: of a node that is not heard nothing is believed.",
			in: mysqlWell(before, func(v *view) {
				v.nodes[0] = node("a", lost)
				v.pods[0] = mysqlPod("a", mysqlLeads, unready)
			}),
			want: wanted(noLeader(v1alpha1.MemberUnknown, notReady), func(o *v1alpha1.TopologyObservation) {
				o.Zones, o.Nodes = []string{"zone-b", "zone-c"}, 2
			}),
		},
		"PodGone": {
			reason: "A lead without a pod is none.",
			in:     mysqlWell(before, func(v *view) { v.pods = v.pods[1:] }),
			want: wanted(noLeader(v1alpha1.MemberStopped), func(o *v1alpha1.TopologyObservation) {
				o.Members[0] = v1alpha1.TopologyMember{Name: "orders-db-a", State: v1alpha1.MemberStopped, VolumeSize: "50Gi"}
			}),
		},
		"FailedOver": {
			reason: "Another one leads, since when the lock says.",
			in: mysqlWell(before, func(v *view) {
				v.pods[0], v.pods[1] = mysqlPod("a", mysqlFollows), mysqlPod("b", members.Status{State: members.StateRunning, Role: members.StatusPrimary, Timeline: 4})
				v.records[members.SuffixLeader] = map[string]string{members.AnnotationLeader: "orders-db-b-0", members.AnnotationAcquired: "2026-11-22T07:59:00Z"}
			}),
			want: wanted(func(o *v1alpha1.TopologyObservation) {
				o.Leader, o.Timeline = "orders-db-b", 4
				o.Members[0] = saw("a", v1alpha1.RoleSyncStandby, v1alpha1.MemberStreaming, v1alpha1.LagInSync)
				o.Members[1] = saw("b", v1alpha1.RoleLeader, v1alpha1.MemberRunning, "")
				o.LastFailover = &v1alpha1.Failover{From: "orders-db-a", To: "orders-db-b", Cause: v1alpha1.CauseSwitchover}
				o.LastFailover.At.Time = now.Add(-time.Minute)
			}),
		},
		"TwoSayTheyLead": {
			reason: "Who says that it leads and has no lock is not believed.",
			in:     mysqlWell(func(v *view) { v.pods[1] = mysqlPod("b", mysqlLeads) }),
			want: wanted(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				o.Members[1] = saw("b", "", v1alpha1.MemberUnknown, v1alpha1.LagUnknown)
			}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.in.facts()); diff != "" {
				t.Errorf("\n%s\nfacts(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNoLockExpires that nobody renews.
func TestNoLockExpires(t *testing.T) {
	clock := now
	m := newMemory(func() time.Time { return clock })
	o := leaderMap("orders-db-a-0", 0, now)
	for _, key := range []string{annotationRenewed, annotationTTL, annotationWritten} {
		delete(o.Annotations, key)
	}
	if !m.lead(o) {
		t.Error("A leader is news")
	}
	if clock = now.Add(time.Hour); m.lead(o) {
		t.Error("The same leader is none")
	}
	if got := m.overdue(); len(got) != 0 {
		t.Errorf("A lock that nobody renews should never be overdue, got %+v", got)
	}
}
