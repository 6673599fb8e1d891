// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"testing"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

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
