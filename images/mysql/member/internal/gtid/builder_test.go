// SPDX-License-Identifier: Apache-2.0

package gtid

import "testing"

func TestBuilder(t *testing.T) {
	var b Builder
	for _, add := range []struct {
		server, tag string
		first, last int64
	}{{one, "", 4, 6}, {one, "", 7, 7}, {one, "", 1, 2}, {two, "pay", 1, 1}, {one, "", 5, 5}} {
		if err := b.Add(add.server, add.tag, add.first, add.last); err != nil {
			t.Fatal(err)
		}
	}
	for _, add := range []struct {
		server, tag string
		first, last int64
	}{{"x", "", 1, 1}, {one, "Tag", 1, 1}, {one, "", 0, 1}, {one, "", 2, 1}, {one, "", 1, 1<<63 - 1}} {
		if err := b.Add(add.server, add.tag, add.first, add.last); err == nil {
			t.Errorf("%v was added, which are no transactions", add)
		}
	}
	s := b.Set()
	if want := one + ":1-2:4-7," + two + ":pay:1"; s.String() != want {
		t.Errorf("the set is %q, want %q", s, want)
	}
	if got := []int64{s.Last(one), s.Last(two)}; got[0] != 7 || got[1] != 0 {
		t.Errorf("the last numbers are %v, want 7 and none", got)
	}
	_ = b.Add(one, "", 8, 9)
	if want := one + ":1-2:4-7," + two + ":pay:1"; s.String() != want {
		t.Errorf("the set changed to %q when more was added", s)
	}
}
