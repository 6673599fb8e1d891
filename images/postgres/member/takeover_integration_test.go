// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// restoreTo a second generation, from the backups of the first: its objects and files, with no member started yet.
func (c *cluster) restoreTo(id string) {
	c.t.Helper()
	c.server.Fence = engine.Fence{}
	c.compose()
	c.second = c.server
	c.second.Database, c.second.Scope, c.second.Restored = secondDatabase, secondScope, true
	file, err := c.second.Patroni()
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("config-g2/patroni.yaml", []byte(file))
	backup := c.settings(secondPrefix+"a", secondPrefix+"b")
	backup.Stanza = secondScope + "-17"
	raw, err := json.Marshal(pgmember.Config{
		Databases: []string{"shop"}, Extensions: []string{}, Volumes: &[]string{}, Backup: &backup,
		From:     &pgmember.Source{Path: backup.Path, Stanza: scope + "-17"},
		TakeOver: &pgmember.TakeOver{ID: id, Database: database, Scope: scope},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("config-g2/member.json", raw)
	config, err := c.second.Dynamic()
	if err != nil {
		c.t.Fatal(err)
	}
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{%q:%q,%q:%q},"annotations":{"config":%q}}}`,
		secondScope+"-config", v1alpha1.LabelDatabase, secondDatabase, v1alpha1.LabelScope, secondScope, config)
	if _, err := c.client.CoreV1().ConfigMaps(c.ns).Patch(c.t.Context(), secondScope+"-config", types.ApplyPatchType, []byte(body),
		metav1.PatchOptions{FieldManager: "composition", Force: new(true)}); err != nil {
		c.t.Fatal(err)
	}
}

// TestRestoreWithoutCapstan: from the fence of a restore in place on, members alone decide. A generation that is filled has a leader and no
// clients. When it is lost while the generation before stops for it, that goes on within the limit, also when its leader is lost as well. When it is
// there, it takes the clients over. There is never more than one leader that clients reach.
func TestRestoreWithoutCapstan(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a", "b"}, archives)
	s.connection(c, "bucket")
	s.connection(c, "source")
	c.want(pgmember.Config{Backup: new(c.settings("a", "b"))})
	begin(t, c, "a", "b")
	w := c.write()
	w.goesOn(10 * time.Second)
	c.eventually("commits wait for another member", time.Minute, c.synchronous)
	if taken, said := c.backup(); taken.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", said)
	}
	c.restoreTo("r1")
	c.join("g2-a")
	c.eventually("the second generation has data", 2*time.Minute, func() bool { return c.ready("g2-a") })
	c.join("g2-b")
	c.eventually("the second generation is ready", 2*time.Minute, func() bool { return c.ready("g2-a", "g2-b") })
	c.eventually("it offers to ask", 30*time.Second, func() bool { r, _ := c.record(); return r.ID == "r1" && r.State == members.FenceOffered })
	former := c.leader()
	if former != "a" && former != "b" {
		t.Fatalf("clients reach %q while the second generation is filled", former)
	}
	for _, l := range []string{"g2-a", "g2-b"} {
		if role := c.pods()[l].Labels[v1alpha1.LabelRole]; role == v1alpha1.RoleLabelLeader {
			t.Errorf("%s has the label of the leader before the first generation stops", l)
		}
	}
	w.reset()

	// The second generation is lost as the first stops.
	const limit = 40
	c.fenceFor("r1", limit)
	c.running("g2-a").Kill()
	c.running("g2-b").Kill()
	c.eventually("the former leader has stopped", 30*time.Second, func() bool { return c.reason(former) == members.ReasonFenced })
	c.running(former).Kill()
	took := c.eventually("the other member leads", (limit+40)*time.Second, func() bool { l := c.leader(); return (l == "a" || l == "b") && l != former })
	w.goesOn(30 * time.Second)
	gap, _ := w.reset()
	r, fenced := c.record()
	t.Logf("%s leads %s after all others were lost; writes stood still for %s; %+v", c.leader(), took, gap, r)
	if fenced || r.State != members.FenceWithdrawn {
		t.Errorf("in force %t, with the record %+v", fenced, r)
	}
	c.start(former)
	c.start("g2-a")
	c.start("g2-b")
	c.eventually("all of it is well", 90*time.Second, func() bool { return c.ready("a", "b", "g2-a", "g2-b") })
	time.Sleep(5 * time.Second)
	if l := c.leader(); l != "a" && l != "b" {
		t.Fatalf("clients reach %q after the restore was withdrawn", l)
	}

	// Another try.
	c.eventually("commits wait for another member", time.Minute, c.synchronous)
	c.restoreTo("r2")
	c.eventually("it offers to ask", 90*time.Second, func() bool { r, _ := c.record(); return r.ID == "r2" && r.State == members.FenceOffered })
	w.reset()
	c.fenceFor("r2", 120)
	took = c.eventually("the second generation has the clients", 90*time.Second, func() bool { l := c.leader(); return l == "g2-a" || l == "g2-b" })
	n := w.count()
	w.goesOn(30 * time.Second)
	gap, _ = w.reset()
	if r, fenced := c.record(); !fenced || r.State != members.FenceCommitted {
		t.Errorf("in force %t, with the record %+v", fenced, r)
	}
	t.Logf("the second generation serves %s after the fence; writes stood still for %s", took, gap)

	// Failover works there, too, and the first generation stays where it is.
	first := c.leader()
	c.running(first).Kill()
	c.eventually("the other member of the second generation leads", time.Minute, func() bool {
		l := c.leader()
		return l != first && slices.Contains([]string{"g2-a", "g2-b"}, l)
	})
	w.goesOn(30 * time.Second)
	w.checkFrom(t, n)
	c.oneLeader()
}
