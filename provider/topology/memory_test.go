// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// leaderMap is <scope>-leader as Patroni writes it, through the cache.
func leaderMap(leader string, position int64, renewed time.Time) *metav1.PartialObjectMetadata {
	m := configMap()
	m.Namespace, m.Name = "shop", "orders-db-3f2a9c1b-leader"
	m.Labels = map[string]string{v1alpha1.LabelDatabase: "orders-db", v1alpha1.LabelScope: "orders-db-3f2a9c1b"}
	m.Annotations = map[string]string{
		members.AnnotationLeader: leader, annotationTTL: "30", annotationWritten: strconv.FormatInt(position, 10),
		annotationRenewed: renewed.Format(time.RFC3339), members.AnnotationAcquired: now.Format(time.RFC3339), "transitions": "1", "history": "x",
	}
	o, err := twice(slimConfigMap, m)
	if err != nil {
		panic(err)
	}
	return o.(*metav1.PartialObjectMetadata)
}

func TestClass(t *testing.T) {
	cases := map[string]struct {
		reason string
		behind int64
		was    string
		want   string
	}{
		"Ahead":     {reason: "What the leader told last is older than what a follower has.", behind: -5, want: v1alpha1.LagInSync},
		"InSync":    {reason: "Less than 1 MiB is nothing.", behind: mebibyte - 1, want: v1alpha1.LagInSync},
		"Behind":    {reason: "1 MiB is something.", behind: mebibyte, want: v1alpha1.LagBehind},
		"Far":       {reason: "64 MiB is much.", behind: 64 * mebibyte, want: v1alpha1.LagFarBehind},
		"Stays":     {reason: "A class is left at half of it.", behind: mebibyte / 2, was: v1alpha1.LagBehind, want: v1alpha1.LagBehind},
		"Leaves":    {reason: "And then it is.", behind: mebibyte/2 - 1, was: v1alpha1.LagBehind, want: v1alpha1.LagInSync},
		"StaysFar":  {reason: "Of 64 MiB, too.", behind: 32 * mebibyte, was: v1alpha1.LagFarBehind, want: v1alpha1.LagFarBehind},
		"LeavesFar": {reason: "From far behind one is behind first.", behind: mebibyte, was: v1alpha1.LagFarBehind, want: v1alpha1.LagBehind},
	}
	for name, tc := range cases {
		if got := class(tc.behind, tc.was); got != tc.want {
			t.Errorf("%s: %s class(%d, %q): want %s, got %s", name, tc.reason, tc.behind, tc.was, tc.want, got)
		}
	}
}

// TestLag of followers that tell where they are each ten seconds, of a leader that writes 8 MiB a second.
func TestLag(t *testing.T) {
	clock := now
	m := newMemory(func() time.Time { return clock })
	woken := map[string]int{}
	position := func() int64 { return at + int64(clock.Sub(now).Seconds()*8*mebibyte) }

	// b stops following after a minute, and does again after two.
	for s := range 240 {
		clock = now.Add(time.Duration(s) * time.Second)
		if s%10 == 0 && m.lead(leaderMap("orders-db-a-0", position(), clock)) {
			woken[strconv.Itoa(s)]++
		}
		if s%10 == 7 {
			c := pod("c", fmt.Sprintf(follows, position()))
			if m.pod(&c, false) {
				woken[strconv.Itoa(s)]++
			}
		}
		if s%10 == 3 && (s < 60 || s > 120) {
			b := pod("b", fmt.Sprintf(follows, position()))
			if m.pod(&b, false) {
				woken[strconv.Itoa(s)]++
			}
		}
		got := m.recall("shop", "orders-db-3f2a9c1b").lag
		if c := got["orders-db-c-0"]; s > 20 && c != v1alpha1.LagInSync {
			t.Errorf("after %d s: c follows closely, got %q", s, c)
		}
		silent := m.recall("shop", "orders-db-3f2a9c1b").silent
		if silent["orders-db-c-0"] || silent["orders-db-a-0"] || silent["orders-db-b-0"] && (s < 60 || s > 125) {
			t.Errorf("after %d s: nobody is silent, got %v", s, silent)
		}
		if s > 90 && s < 120 && !silent["orders-db-b-0"] {
			t.Errorf("after %d s: b has been silent since 60 s, got %v", s, silent)
		}
		b, want := got["orders-db-b-0"], ""
		switch {
		case s > 20 && s < 60, s > 125:
			want = v1alpha1.LagInSync
		case s > 90 && s < 120:
			want = v1alpha1.LagFarBehind
		}
		if want != "" && b != want {
			t.Errorf("after %d s: want b %s, got %q", s, want, b)
		}
	}

	// The leader at first, classes for the first time, behind, far behind, in sync.
	if len(woken) > 7 {
		t.Errorf("want few looks in four minutes, got them at %v", woken)
	}
}

// TestSilentNever: a standby has nothing to report while its leader writes nothing, nor in the time in which no report arrives at all.
func TestSilentNever(t *testing.T) {
	clock := now
	m := newMemory(func() time.Time { return clock })
	b := pod("b", fmt.Sprintf(follows, at))
	m.pod(&b, false)
	silent := func() bool { return m.recall("shop", "orders-db-3f2a9c1b").silent["orders-db-b-0"] }
	for s := 0; s <= 600; s += 10 {
		clock = now.Add(time.Duration(s) * time.Second)
		if m.lead(leaderMap("orders-db-a-0", at, clock)); silent() {
			t.Fatalf("after %d s: the leader has written nothing", s)
		}
	}

	// The API server was away for ten minutes; the leader comes first.
	clock = clock.Add(10 * time.Minute)
	m.lead(leaderMap("orders-db-a-0", at+mebibyte, clock))
	clock = clock.Add(10 * time.Second)
	if m.lead(leaderMap("orders-db-a-0", at+mebibyte, clock)); silent() {
		t.Error("A standby has time to report, too.")
	}
	clock = clock.Add(time.Second)
	b = pod("b", fmt.Sprintf(follows, at+mebibyte))
	m.pod(&b, false)
	clock = clock.Add(10 * time.Second)
	if m.lead(leaderMap("orders-db-a-0", at+mebibyte, clock)); silent() {
		t.Error("It has all.")
	}

	// A member whose container ended is no longer judged.
	clock = clock.Add(time.Minute)
	m.lead(leaderMap("orders-db-a-0", at+2*mebibyte, clock))
	clock = clock.Add(15 * time.Second)
	if m.lead(leaderMap("orders-db-a-0", at+2*mebibyte, clock)); !silent() {
		t.Error("It has not reported what the leader wrote.")
	}
	b = pod("b", fmt.Sprintf(follows, at+mebibyte), waiting("ContainerCreating", ""))
	if m.pod(&b, false); silent() {
		t.Error("Its container ended, which says enough.")
	}
}

// TestExpired leads are told only when the API server confirms them.
func TestExpired(t *testing.T) {
	clock := now
	m := newMemory(func() time.Time { return clock })
	m.lead(leaderMap("orders-db-a-0", at, clock))
	clock = now.Add(29 * time.Second)
	if got := m.overdue(); len(got) != 0 {
		t.Errorf("A lead of 30 s is not over after 29, got %v", got)
	}
	clock = now.Add(31 * time.Second)
	got := m.overdue()
	if len(got) != 1 || got[0].database != "orders-db" {
		t.Fatalf("It is after 31, got %v", got)
	}
	if m.confirm(got[0]) {
		t.Error("Whoever can lead has time to take over.")
	}
	clock = clock.Add(5 * time.Second)
	if got := m.overdue(); len(got) != 0 {
		t.Errorf("It is not asked for all the time, got %v", got)
	}
	clock = clock.Add(10 * time.Second)
	got = m.overdue()
	if len(got) != 1 || !m.confirm(got[0]) || !m.recall("shop", "orders-db-3f2a9c1b").expired {
		t.Errorf("Then it is over, got %v", got)
	}
	if !m.lead(leaderMap("orders-db-a-0", at, clock)) || m.recall("shop", "orders-db-3f2a9c1b").expired {
		t.Error("It is not any more when it is renewed, and that is a fact.")
	}
	if m.lead(leaderMap("orders-db-a-0", at+1, clock.Add(time.Second))) {
		t.Error("That it is renewed again is none.")
	}
	m.forget("shop", "orders-db-3f2a9c1b")
	if len(m.all) != 0 {
		t.Error("A scope that is gone should be forgotten.")
	}
}

// TestDiffer shows which events end where they are compared.
func TestDiffer(t *testing.T) {
	as := func(p corev1.Pod) *corev1.Pod {
		p.ResourceVersion = strconv.FormatInt(time.Now().UnixNano(), 10)
		return &p
	}
	cases := map[string]struct {
		reason string
		got    bool
		want   bool
	}{
		"Position": {reason: "Positions grow.", got: differ(as(pod("b", fmt.Sprintf(follows, at))), as(pod("b", fmt.Sprintf(follows, at+99))))},
		"Renewed":  {reason: "Leads are renewed.", got: differ(leaderMap("orders-db-a-0", at, now), leaderMap("orders-db-a-0", at+99, now.Add(time.Minute)))},
		"Heartbeat": {
			reason: "Nodes tell that they live.",
			got: differ(new(node("a")), new(node("a", func(n *corev1.Node) {
				n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(now.Add(time.Minute))
				n.ResourceVersion = "7"
			}))),
		},
		"Leader":   {reason: "Another leads.", got: differ(leaderMap("orders-db-a-0", at, now), leaderMap("orders-db-b-0", at, now)), want: true},
		"State":    {reason: "A follower does not stream any more.", got: differ(as(pod("b", fmt.Sprintf(follows, at))), as(pod("b", starts))), want: true},
		"Ready":    {reason: "A pod is not ready any more.", got: differ(as(pod("b", starts)), as(pod("b", starts, unready))), want: true},
		"Going":    {reason: "A pod goes.", got: differ(as(pod("b", starts)), as(pod("b", starts, going))), want: true},
		"Cordoned": {reason: "A node takes no more pods.", got: differ(new(node("a")), new(node("a", func(n *corev1.Node) { n.Spec.Unschedulable = true }))), want: true},
	}
	for name, tc := range cases {
		if tc.got != tc.want {
			t.Errorf("%s: %s differ(...): want %t, got %t", name, tc.reason, tc.want, tc.got)
		}
	}
}
