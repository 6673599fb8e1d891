// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

const (
	withLogical = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pooler: {}, config: {wal_level: logical}, consumers: [{name: app}, {name: feed-x, access: ReadOnly}]}`
	withSlots   = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pooler: {}, config: {wal_level: logical}, consumers: [{name: app}, {name: feed-x, access: ReadOnly, replication: true}],
		replication: {slots: [{name: cdc}], publications: [{name: some, tables: [public.b, public.a]}, {name: every, allTables: true}]}}`
)

// TestReplication: members are told of slots, publications and who may read changes, the consumer's Secret points to the leader and to no
// pooler, and no member restarts.
func TestReplication(t *testing.T) {
	w := running(t, withLogical)
	before := w.request.Observed
	w.edit(withSlots)
	for range 3 {
		w.pass()
	}
	var told pgmember.Config
	if err := json.Unmarshal([]byte(compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember)), &told); err != nil {
		t.Fatal(err)
	}
	want := pgmember.Config{
		Slots: []pgmember.Slot{{Name: "cdc", Database: "orders_db", Plugin: "pgoutput"}},
		Publications: []pgmember.Publication{
			{Name: "some", Database: "orders_db", Tables: []string{"public.a", "public.b"}}, {Name: "every", Database: "orders_db", AllTables: true},
		},
		Replicators: []string{"feed_x", "feed_x-b"},
	}
	if diff := cmp.Diff(want, pgmember.Config{Slots: told.Slots, Publications: told.Publications, Replicators: told.Replicators}); diff != "" {
		t.Errorf("what members are told: -want, +got:\n%s", diff)
	}
	connection := func(consumer string) (host string, endpoints int) {
		o := w.request.Observed[names.ConsumerPrefix+consumer].Map()
		return compose.Text(o, "spec", "forProvider", "connection", "host"), len(compose.List(o, "spec", "forProvider", "connection", "endpoints"))
	}
	if host, endpoints := connection("feed-x"); host != "orders-db-rw.shop.svc" || endpoints != 0 {
		t.Errorf("the consumer of changes connects to %s and %d poolers", host, endpoints)
	}
	if _, endpoints := connection("app"); endpoints != 1 {
		t.Errorf("another consumer has %d poolers", endpoints)
	}
	for _, set := range []string{"a", "b", "c"} {
		name := names.MemberPrefix + set
		if before[name] == nil {
			t.Fatalf("no object %s", name)
		}
		if diff := cmp.Diff(before[name].Map()["spec"], w.request.Observed[name].Map()["spec"]); diff != "" {
			t.Errorf("member %s is not what it was: -before, +after:\n%s", set, diff)
		}
	}
}
