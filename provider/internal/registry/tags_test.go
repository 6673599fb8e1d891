// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/provider/internal/mlflow"
)

func TestTags(t *testing.T) {
	cases := map[string]struct {
		reason string
		want   map[string]string
		have   mlflow.Tags
		before []string
		diff   TagDiff
		own    []string
	}{
		"Nothing": {reason: "Nothing is wanted."},
		"Set": {
			reason: "What is missing or other is set, in order.",
			want:   map[string]string{"c": "1", "b": "1", "a": "1"}, have: mlflow.Tags{"b": "1", "a": "2"},
			diff: TagDiff{Set: []string{"a", "c"}}, own: []string{"a", "b"},
		},
		"EmptyValue": {
			reason: "An empty value is not a missing one.",
			want:   map[string]string{"a": "", "b": ""}, have: mlflow.Tags{"b": ""},
			diff: TagDiff{Set: []string{"a"}}, own: []string{"b"},
		},
		"Others": {
			reason: "Tags of others stay.",
			have:   mlflow.Tags{"a": "1"},
		},
		"Remove": {
			reason: "What was ours and is no longer wanted goes.",
			want:   map[string]string{"a": "1"}, have: mlflow.Tags{"a": "1", "b": "1", "c": "1"}, before: []string{"c", "b", "a"},
			diff: TagDiff{Remove: []string{"b", "c"}}, own: []string{"a", "b", "c"},
		},
		"Gone": {
			reason: "What is gone already need not be removed.",
			have:   mlflow.Tags{}, before: []string{"b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.diff, DiffTags(tc.want, tc.have, tc.before)); diff != "" {
				t.Errorf("\n%s\nDiffTags(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.own, OwnKeys(tc.want, tc.have, tc.before)); diff != "" {
				t.Errorf("\n%s\nOwnKeys(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	if Describe(nil, "theirs") || Describe(new("a"), "a") || !Describe(new(""), "a") || !Describe(new("a"), "") {
		t.Error("A description is changed when it is wanted and differs, and only then")
	}
}
