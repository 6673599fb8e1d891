// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
)

// TestBehind: a standby is online in its group, and receives less than its leader commits. Clients must not be sent to one that gets older
// and older, and both say what the matter is.
func TestBehind(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w, p := c.write(), c.askAll()
	w.goesOn(10 * time.Second)
	c.through(t, w, p, []step{{"FollowersCut", followersCut}, {"FormerLeader", formerLeaderCut}, {"FromLeader", fromLeaderCut}})
}

// formerLeaderCut is the same with the member that began the group as one of both. Then the group may remove one, which must not come back before
// it reaches the other one: when it did, writes waited for 44 s.
func formerLeaderCut(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former, other := moved(t, c, w)
	said := apart(t, c, w, former, other)
	if !slices.Contains(slices.Collect(maps.Values(said)), members.ReasonMembersApart) {
		t.Errorf("members reported %v, want that one is apart", said)
	}
}

// fromLeaderCut: a standby does not hear from its leader, and the former leader hears from both. One of both gets no clients, and says why.
func fromLeaderCut(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	_, other := moved(t, c, w)
	leader := c.leader()
	c.part(leader, other)
	c.eventually("one of both gets no clients, and reports why", 3*time.Minute, func() bool {
		return slices.ContainsFunc([]string{leader, other}, func(l string) bool {
			_, r, _ := c.status(l)
			if r.Reason != "" {
				t.Logf("%s: %s: %s", l, r.Reason, r.Message)
			}
			return c.probe(l, "/readyz") != nil && r.Reason != ""
		})
	})
	w.goesOn(time.Minute)
	gap, errs := w.reset()
	t.Logf("%s was the leader, and %s is; writes waited %s; %v", leader, c.leader(), gap, errs)
	c.unite(leader, other)
	c.whole(w)
}

// moved leader: the former one and the other standby.
func moved(t *testing.T, c *cluster, w *writer) (former, other string) {
	t.Helper()
	former = c.leader()
	c.annotate(members.SuffixFailover, "provider", map[string]string{
		members.AnnotationLeader: c.identify(former).Pod, members.AnnotationCandidate: c.identify(c.followers()[1]).Pod,
	})
	gapOf(t, c, w, former)
	c.eventually("all members are ready", time.Minute, func() bool { return c.ready(c.letters...) })
	return former, slices.DeleteFunc(c.followers(), func(l string) bool { return l == former })[0]
}

// followersCut: two standbys do not hear from each other, and both hear from the leader. One of them may receive ever less of what the group
// commits, and has executed all that it received: without a bound it was ready with rows of three minutes before. Both say that they are apart.
func followersCut(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	said := apart(t, c, w, c.followers()[0], c.followers()[1])
	if len(said) != 2 || slices.ContainsFunc(slices.Collect(maps.Values(said)), func(reason string) bool { return reason != members.ReasonMembersApart }) {
		t.Errorf("members reported %v, want both that they are apart", said)
	}
}

// apart are two members for three minutes. It returns why they reported anything, by their letters.
func apart(t *testing.T, c *cluster, w *writer, one, two string) (said map[string]string) {
	t.Helper()
	c.part(one, two)
	// The program compares every 10 s, and allows a minute.
	const bound = 2 * time.Minute
	rows := map[int]time.Time{} // that were acknowledged by these times
	said = map[string]string{}
	for begun := time.Now(); time.Since(begun) < bound+time.Minute; time.Sleep(5 * time.Second) {
		rows[w.count()] = time.Now()
		for _, l := range []string{one, two} {
			if _, r, _ := c.status(l); r.Reason != "" && said[l] != r.Reason {
				said[l] = r.Reason
				t.Logf("%s reports after %s: %s: %s", l, time.Since(begun).Round(time.Second), r.Reason, r.Message)
			}
			ready := c.probe(l, "/readyz") == nil
			has, err := strconv.Atoi(c.inside(l, "SELECT COUNT(*) FROM shop.ledger"))
			if err != nil {
				continue // it left the group
			}
			var old time.Duration
			for n, at := range rows {
				if n > has {
					old = max(old, time.Since(at))
				}
			}
			t.Logf("after %s %s has %d of %d rows, is %s old, ready: %t", time.Since(begun).Round(time.Second), l, has, w.count(), old.Round(time.Second), ready)
			if ready && old > bound {
				t.Fatalf("clients are sent to %s, which lacks rows that were acknowledged %s ago", l, old.Round(time.Second))
			}
		}
	}
	gap, errs := w.reset()
	t.Logf("writes waited %s; %v", gap, errs)
	if gap > 30*time.Second {
		t.Error("members that are apart keep the group from writing")
	}
	w.goesOn(30 * time.Second)
	c.unite(one, two)
	c.whole(w)
	for _, l := range []string{one, two} {
		c.eventually(l+" reports nothing", time.Minute, func() bool {
			_, r, _ := c.status(l)
			return r.Reason == ""
		})
	}
	return said
}
