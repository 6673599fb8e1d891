// SPDX-License-Identifier: Apache-2.0

package form

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis"
)

func fields(t *testing.T, schema []byte) []Field {
	t.Helper()
	all, err := Read(schema)
	if err != nil {
		t.Fatal(err)
	}

	return all
}

func TestRead(t *testing.T) {
	for kind, schema := range map[string][]byte{"Algorithm": apis.AlgorithmForm, "Database": apis.DatabaseForm, "Training": apis.TrainingForm} {
		all := fields(t, schema)
		if len(all) < 8 || len(all) > 12 {
			t.Errorf("%s: %d fields", kind, len(all))
		}
		for _, f := range all {
			if f.Title == "" || f.Help == "" || f.Type == "" || f.Required && f.Advanced {
				t.Errorf("%s: %+v", kind, f)
			}
		}
	}
	first := fields(t, apis.DatabaseForm)[0]
	if first.Path != "engine" || !first.Required || len(first.Options) != 2 {
		t.Errorf("the first field of a Database: %+v", first)
	}
	if _, err := Read([]byte("{")); err == nil {
		t.Error("a broken schema has to be refused")
	}
}

func TestApply(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string
		filled map[string]string
		want   string
		err    string
	}{
		"Least": {
			reason: "What is not filled in is not set: no block is there.",
			object: `{}`, filled: map[string]string{"engine": "postgres", "version": "17", "replicas": "3", "storage": "50Gi"},
			want: `{"spec": {"engine": "postgres", "version": "17", "replicas": 3, "storage": "50Gi"}}`,
		},
		"Block": {
			reason: "A field makes its block, and a Boolean that is false is a value.",
			object: `{}`, filled: map[string]string{"backup.enabled": "false", "deletionProtection": "false"},
			want: `{"spec": {"backup": {"enabled": false}, "deletionProtection": false}}`,
		},
		"Emptied": {
			reason: "An emptied field goes, and its block with it; what the form does not have stays.",
			object: `{"spec": {"backup": {"schedule": "0 3 * * *"}, "availability": {"durability": "Strict", "spread": "None"}}}`,
			filled: map[string]string{},
			want:   `{"spec": {"availability": {"spread": "None"}}}`,
		},
		"Untouched": {
			reason: "What was not changed in the form stays as the YAML has it.",
			object: `{"spec": {"replicas": 3, "storage": "50Gi"}}`, filled: map[string]string{"replicas": "3", "storage": " 50Gi "},
			want: `{"spec": {"replicas": 3, "storage": "50Gi"}}`,
		},
		"Number":  {reason: "The field, its value and what it has to be.", object: `{}`, filled: map[string]string{"replicas": "three"}, err: `Members (spec.replicas) is "three", and has to be a whole number`},
		"Boolean": {reason: "The same.", object: `{}`, filled: map[string]string{"backup.enabled": "maybe"}, err: "has to be true or false"},
		"Other":   {reason: "The YAML has no block there.", object: `{"spec": {"backup": "yes"}}`, filled: map[string]string{"backup.enabled": "true"}, err: "cannot set Take backups (spec.backup.enabled)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var object, want map[string]any
			if err := json.Unmarshal([]byte(tc.object), &object); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tc.want), &want); tc.want != "" && err != nil {
				t.Fatal(err)
			}
			err := Apply(object, Values(fields(t, apis.DatabaseForm), object), func(path string) string { return tc.filled[path] })
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s Want %q, got %v", tc.reason, tc.err, err)
				}

				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, _ := json.Marshal(object)
			expected, _ := json.Marshal(want)
			if diff := cmp.Diff(string(expected), string(got)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestListsOfTexts: an item with several lines is not split.
func TestListsOfTexts(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"args": []any{"-c", "a\nb"}}}
	shown := Values(fields(t, apis.TrainingForm), object)
	for text, refused := range map[string]bool{"-c\r\na\r\nb": false, "-c\na\nb\nc": true, "": true} {
		err := Apply(object, shown, func(path string) string {
			if path == "args" {
				return text
			}

			return ""
		})
		if (err != nil) != refused {
			t.Errorf("%q: want refused %t, got %v", text, refused, err)
		}
	}
	want := map[string]any{"spec": map[string]any{"args": []any{"-c", "a\nb"}}}
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestLists(t *testing.T) {
	object := map[string]any{}
	shown := Values(fields(t, apis.TrainingForm), object)
	err := Apply(object, shown, func(path string) string {
		if path == "args" {
			return "python\r\ntrain.py\r\n\r\n --epochs=3 "
		}

		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"spec": map[string]any{"args": []any{"python", "train.py", "--epochs=3"}}}
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for _, f := range Values(shown, object) {
		if f.Path == "args" && f.Value != "python\ntrain.py\n--epochs=3" {
			t.Errorf("a line each: %q", f.Value)
		}
	}
}
