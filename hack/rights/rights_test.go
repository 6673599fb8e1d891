// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/hack/internal/build"
)

// TestRights shows that every right of package/platform.yaml is used or has a reason, and that the page says so.
func TestRights(t *testing.T) {
	root, err := build.Repository()
	if err != nil {
		t.Fatal(err)
	}
	p, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&checkCmd{}).Run(p); err != nil {
		t.Error(err)
	}
	if err := (&tableCmd{Check: true}).Run(p); err != nil {
		t.Error(err)
	}
}

const platform = `kind: ClusterRole
metadata: {name: "capstan:provider"}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
- {apiGroups: [apps], resources: [statefulsets/scale], verbs: [patch]}
---
kind: ConfigMap
---
kind: ClusterRole
metadata: {name: "capstan:activator"}
rules:
- {apiGroups: [observe.capstan.dev], resources: [analyses], resourceNames: [one], verbs: [hold]}
`

const listed = `
reasons: {cache: lists, mark: marks}
rights:
- {role: "capstan:provider", resource: pods, need: a, used: [watch], unused: {list: cache}}
- {role: "capstan:provider", resource: statefulsets.apps/scale, need: b, used: [patch]}
- {role: "capstan:activator", resource: analyses.observe.capstan.dev, need: c, unused: {hold: mark}}
`

func TestContradictions(t *testing.T) {
	both := "capstan:provider pods watch\ncapstan:provider statefulsets.apps/scale patch\n"
	cases := map[string]struct {
		reason   string
		from, to string // changes of the list
		used     string
		whole    bool
		want     []string
	}{
		"Holds": {reason: "A part of the tests need not use everything."},
		"Whole": {reason: "All of them do.", used: both, whole: true},
		"NotUsed": {
			reason: "What no test uses is removed, or has a reason.",
			used:   "capstan:provider pods watch\n", whole: true,
			want: []string{"capstan:provider statefulsets.apps/scale patch was used by no e2e test: remove the right, or give a reason"},
		},
		"Used": {
			reason: "A reason why nothing uses a verb ends with its first use.",
			used:   "capstan:provider pods list\n",
			want:   []string{"capstan:provider pods list has a reason why it is not used, and was used"},
		},
		"Anyway": {
			reason: "Unless it holds for what is used, too.",
			from:   "reasons:", to: "anyway: [cache]\nreasons:",
			used: "capstan:provider pods list\n",
		},
		"NotListed": {
			reason: "A new right has to say what it is for.",
			from:   "used: [watch], ", to: "",
			want: []string{"capstan:provider pods watch is granted, and neither used nor with a reason: remove the right, or give a reason"},
		},
		"NotGranted": {
			reason: "The list has nothing that is not granted.",
			from:   "[patch]", to: "[patch, get]",
			want: []string{"capstan:provider statefulsets.apps/scale get is listed, and not granted: remove it"},
		},
		"NoReason": {
			reason: "A reason is one of the list, and each of them is needed.",
			from:   "hold: mark", to: "hold: other",
			want: []string{
				`capstan:activator analyses.observe.capstan.dev hold has the reason "other", which is not in the list`,
				`the reason "mark" is given for nothing`,
			},
		},
		"Twice": {
			reason: "A verb is used, or it is not.",
			from:   "used: [watch]", to: "used: [watch, list]",
			want: []string{"capstan:provider pods list is listed twice"},
		},
		"NoNeed": {
			reason: "Somebody needs each resource.",
			from:   "need: b, ", to: "",
			want: []string{"capstan:provider statefulsets.apps/scale does not say what needs it"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			granted, err := grants([]byte(platform))
			if err != nil {
				t.Fatal(err)
			}
			l, err := parse([]byte(strings.Replace(listed, tc.from, tc.to, 1)))
			if err != nil {
				t.Fatal(err)
			}
			used := set{}
			if err := used.addText(tc.used); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, l.contradictions(granted, used, tc.whole)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSeen(t *testing.T) {
	const allowed = `"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by ClusterRoleBinding \"x\" of ClusterRole \"other\" to ServiceAccount \"y\""}}`
	const byActivator = `"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by RoleBinding \"x/shop\" of ClusterRole \"capstan:activator\" to ServiceAccount \"y/shop\""}}`
	const provider = `"user":{"username":"system:serviceaccount:crossplane-system:provider-capstan"},`
	cases := map[string]struct {
		reason string
		line   string
		want   string
	}{
		"Provider": {
			reason: "Whichever role the API server names, the account has the right from ours, too.",
			line:   `{"requestReceivedTimestamp":"2026-11-25T23:00:00.1Z","verb":"watch",` + provider + `"objectRef":{"resource":"pods"},` + allowed,
			want:   "capstan:provider pods watch\n",
		},
		"Subresource": {
			reason: "A subresource is a resource of its own.",
			line:   `{"requestReceivedTimestamp":"2026-11-25T23:00:00.1Z","verb":"patch",` + provider + `"objectRef":{"apiGroup":"apps","resource":"statefulsets","subresource":"scale"},` + allowed,
			want:   "capstan:provider statefulsets.apps/scale patch\n",
		},
		"Activator": {
			reason: "Accounts in the namespaces of users are known by their role.",
			line:   `{"requestReceivedTimestamp":"2026-11-25T23:00:00.1Z","verb":"hold","user":{"username":"system:serviceaccount:shop:reco"},"objectRef":{"apiGroup":"observe.capstan.dev","resource":"analyses"},` + byActivator,
			want:   "capstan:activator analyses.observe.capstan.dev hold\n",
		},
		"Forbidden": {
			reason: "What is refused uses no right.",
			line:   `{"requestReceivedTimestamp":"2026-11-25T23:00:00.1Z","verb":"watch",` + provider + `"objectRef":{"resource":"pods"},"annotations":{"authorization.k8s.io/decision":"forbid"}}`,
		},
		"Before": {
			reason: "Another version of Capstan was on the cluster.",
			line:   `{"requestReceivedTimestamp":"2026-11-25T22:00:00.1Z","verb":"watch",` + provider + `"objectRef":{"resource":"pods"},` + allowed,
		},
		"NotOurs": {
			reason: "Crossplane grants other rights to every provider.",
			line:   `{"requestReceivedTimestamp":"2026-11-25T23:00:00.1Z","verb":"get",` + provider + `"objectRef":{"resource":"secrets"},` + allowed,
		},
		"Incomplete": {reason: "The log is being written.", line: `{"verb":"wat`},
	}
	began := time.Date(2026, 11, 25, 23, 0, 0, 0, time.UTC)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			granted, err := grants([]byte(platform))
			if err != nil {
				t.Fatal(err)
			}
			used := set{}
			if err := used.addLog(strings.NewReader(tc.line+"\n"), granted, began); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, used.text()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	cases := map[string]struct {
		reason string
		whole  bool
		want   []entry
	}{
		"Part": {
			reason: "A part of the tests only adds.",
			want: []entry{
				{Role: "capstan:provider", Resource: "pods", Need: "a", Used: []string{"list", "watch"}},
				{Role: "capstan:provider", Resource: "statefulsets.apps/scale", Need: "b", Used: []string{"patch"}},
				{Role: "capstan:activator", Resource: "analyses.observe.capstan.dev", Need: "c", Unused: map[string]string{"hold": "mark"}},
			},
		},
		"Whole": {
			reason: "All of them show what is not used.", whole: true,
			want: []entry{
				{Role: "capstan:provider", Resource: "pods", Need: "a", Used: []string{"list"}},
				{Role: "capstan:provider", Resource: "statefulsets.apps/scale", Need: "b"},
				{Role: "capstan:activator", Resource: "analyses.observe.capstan.dev", Need: "c", Unused: map[string]string{"hold": "mark"}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := parse([]byte(listed))
			if err != nil {
				t.Fatal(err)
			}
			l.record(set{{Role: "capstan:provider", Resource: "pods", Verb: "list"}: true}, tc.whole)
			// What is written is read again, without what is empty.
			data, err := l.text()
			if err != nil {
				t.Fatal(err)
			}
			var got list
			if err := yaml.UnmarshalStrict(data, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Rights); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(map[string]string{"mark": "marks"}, got.Reasons); diff != "" {
				t.Errorf("%s\nreasons that are left: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
