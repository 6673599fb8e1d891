// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"testing"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// TestServerIDs: no two servers of a Database share an id, in none of its generations, and a Database that imports from another one can read
// its log: a server skips events of its own id, and does not begin to follow a server that has it.
func TestServerIDs(t *testing.T) {
	seen := map[uint32]string{}
	for _, identity := range []string{"3f2a9c1b", "4a2a9c1b", ""} {
		for generation := 1; generation <= 3; generation++ {
			for _, name := range []string{"orders-db-a", "orders-db-b", "orders-db-p"} {
				id, err := Names{Name: name, Identity: identity}.ServerID(generation)
				if err != nil {
					t.Fatal(err)
				}
				one := fmt.Sprint(identity, " ", generation, " ", name)
				if other, ok := seen[id]; ok {
					t.Errorf("%s and %s share the id %d", one, other, id)
				}
				if seen[id] = one; id < 1<<16 {
					t.Errorf("%s has the id %d, which is for consumers of changes", one, id)
				}
			}
		}
	}
	for _, wrong := range []Names{{Name: "orders-db-q"}, {Name: "orders"}} {
		if _, err := wrong.ServerID(1); err == nil {
			t.Errorf("%q has an id", wrong.Name)
		}
	}
	if _, err := (Names{Name: "orders-db-a"}).ServerID(4096); err == nil {
		t.Error("generation 4096 has an id, which is one of another Database")
	}
}

// TestGroups: all members know the first name of a group, and no two groups that lack transactions share one.
func TestGroups(t *testing.T) {
	n, same := Names{Identity: "3f2a9c1b"}, Names{Name: "orders-b", Identity: "3f2a9c1b"}
	if n.GroupName(1) != same.GroupName(1) || n.GroupName(1) == n.GroupName(2) || n.GroupName(1) == (Names{Identity: "4a2a9c1b"}).GroupName(1) {
		t.Error("a generation of a Database has one first name of its own")
	}
	first, second := AnotherGroup(), AnotherGroup()
	if first == second {
		t.Errorf("two groups have the name %s: their transactions would have the same ids", first)
	}
	if set, err := gtid.Parse(first + ":1"); err != nil || !set.From(first) {
		t.Errorf("%q is no name of transactions: %v", first, err)
	}
}
