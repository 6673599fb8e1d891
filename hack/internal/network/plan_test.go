// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPlan(t *testing.T) {
	a := Node{Letter: "a", Address: netip.MustParseAddr("198.18.3.11"), Pods: netip.MustParsePrefix("198.19.1.0/24")}
	b := Node{Letter: "b", Address: netip.MustParseAddr("198.18.3.12"), Pods: netip.MustParsePrefix("198.19.2.0/24")}
	c := Node{Letter: "c", Address: netip.MustParseAddr("198.18.3.13"), Pods: netip.MustParsePrefix("198.19.3.0/24")}
	cases := map[string]struct {
		reason string
		nodes  int
		want   []Node
		err    error
	}{
		"None":  {reason: "A cluster without nodes runs nothing.", nodes: 0, err: cmpopts.AnyError},
		"One":   {reason: "One node is the first of three.", nodes: 1, want: []Node{a}},
		"Three": {reason: "Every node has its own pods.", nodes: 3, want: []Node{a, b, c}},
		"Four":  {reason: "There are three zones.", nodes: 4, err: cmpopts.AnyError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Plan(tc.nodes)
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\n-want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRangesDoNotOverlap(t *testing.T) {
	ranges := []netip.Prefix{
		netip.MustParsePrefix(Nodes), netip.MustParsePrefix(Pods), netip.MustParsePrefix(Services),
	}
	for i, one := range ranges {
		for _, other := range ranges[i+1:] {
			if one.Overlaps(other) {
				t.Errorf("%s overlaps %s: kube-proxy tells pods from everything else by their range", one, other)
			}
		}
	}
	plan, err := Plan(MaxNodes)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range plan {
		if !ranges[0].Contains(n.Address) || !ranges[1].Overlaps(n.Pods) {
			t.Errorf("node %q lies outside the ranges: %v", n.Letter, n)
		}
	}
}
