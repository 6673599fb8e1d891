// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/provider/internal/mlflow"
)

func TestEvidence(t *testing.T) {
	want := mlflow.Tags{"capstan.dev/champion.revision": "a", "capstan.dev/champion.live.since": ""}
	got := Evidence("champion", map[string]string{"revision": "a", "live.since": ""})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Evidence(...): -want, +got:\n%s", diff)
	}
}

func TestEvidenceIn(t *testing.T) {
	long := strings.Repeat("k", 37)
	cases := map[string]struct {
		reason string
		tag    string
		want   string
	}{
		"Ours":         {reason: "It is what the alias says.", tag: "capstan.dev/champion.a", want: "a"},
		"Dots":         {reason: "The first dot ends the alias.", tag: "capstan.dev/champion.a.b-c.", want: "a.b-c."},
		"Longest":      {reason: "It can be written.", tag: "capstan.dev/champion." + long, want: long},
		"TooLong":      {reason: "It cannot have been written.", tag: "capstan.dev/champion.k" + long},
		"NoKey":        {reason: "It cannot have been written.", tag: "capstan.dev/champion."},
		"Upper":        {reason: "It cannot have been written.", tag: "capstan.dev/champion.A"},
		"Space":        {reason: "It cannot have been written.", tag: "capstan.dev/champion.a b"},
		"Path":         {reason: "It cannot have been written.", tag: "capstan.dev/champion.a/b"},
		"NoDot":        {reason: "Another alias.", tag: "capstan.dev/championa"},
		"LongerAlias":  {reason: "Another alias.", tag: "capstan.dev/champion-2.a"},
		"ShorterAlias": {reason: "Another alias.", tag: "capstan.dev/champ.a"},
		"OtherCase":    {reason: "Another alias.", tag: "capstan.dev/Champion.a"},
		"Owner":        {reason: "It tells whose the version is.", tag: "capstan.dev/owner"},
		"AliasOwner":   {reason: "It tells whose an alias is.", tag: "capstan.dev/alias.champion"},
		"Others":       {reason: "It is somebody else's.", tag: "champion.a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var tagKeys, keys []string
			if tc.want != "" {
				tagKeys, keys = []string{tc.tag}, []string{tc.want}
			}
			gotTags, got := EvidenceIn("champion", mlflow.Tags{tc.tag: "x"})
			if diff := cmp.Diff(tagKeys, gotTags) + cmp.Diff(keys, got); diff != "" {
				t.Errorf("\n%s\nEvidenceIn(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}

	// No alias can pass for what tells whose a version is.
	if tags, _ := EvidenceIn("owner", mlflow.Tags{"capstan.dev/owner": "x", "capstan.dev/owner.z": "x", "capstan.dev/owner.a": "x"}); !cmp.Equal(tags, []string{"capstan.dev/owner.a", "capstan.dev/owner.z"}) {
		t.Errorf("EvidenceIn(...): want what an alias called owner says, sorted, got %v", tags)
	}
}
