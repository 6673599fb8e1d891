// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/hack/internal/addons"
)

func TestMissing(t *testing.T) {
	core, rest := addons.Core(), addons.Rest()
	cases := map[string]struct {
		reason string
		state  state
		core   bool
		want   []addons.Stage
	}{
		"Nothing":         {reason: "A cluster that does not run needs everything.", want: slices.Concat(core, rest)},
		"NothingYet":      {reason: "A first Algorithm needs the core.", core: true, want: core},
		"Core":            {reason: "The next up installs the rest.", state: state{Core: true}, want: rest},
		"CoreAgain":       {reason: "What runs is not installed again.", state: state{Core: true}, core: true},
		"Complete":        {reason: "Nothing is missing.", state: state{Core: true, Complete: true}},
		"CompleteForCore": {reason: "Nor of the core.", state: state{Core: true, Complete: true}, core: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(names(tc.want), names(tc.state.missing(tc.core))); diff != "" {
				t.Errorf("%s\nmissing: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNeeded(t *testing.T) {
	want := []string{"etcd", "containerd", "runc", "kubernetes", "pause", "coredns", "crossplane", "crossplane-cli"}
	if diff := cmp.Diff(want, needed(addons.Core())); diff != "" {
		t.Errorf("what a first Algorithm needs, in the order in which it is compiled: -want, +got:\n%s", diff)
	}
	all := needed(slices.Concat(addons.Core(), addons.Rest()))
	if diff := cmp.Diff(want, all[:len(want)]); diff != "" {
		t.Errorf("the same comes first when everything is needed: -want, +got:\n%s", diff)
	}
	if slices.Sort(all); len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("a program is asked for twice: %v", all)
	}
}

func names(stages []addons.Stage) []string {
	got := make([]string, 0, len(stages))
	for _, s := range stages {
		got = append(got, s.Name())
	}
	return got
}
