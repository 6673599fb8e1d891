// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestStored(t *testing.T) {
	cases := map[string]struct {
		reason string
		from   string
		copied bool
	}{
		"Same":  {reason: "What is in the version of the Composition is rendered as it is.", from: "v1alpha1"},
		"Other": {reason: "Crossplane never sees the version in which it was written.", from: "v1beta1", copied: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(name, content string) string {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			written := put("written.yaml", "apiVersion: capstan.dev/"+tc.from+"\nkind: Thing\nspec: {size: 3}\n")
			composition := put("composition.yaml", "kind: Composition\nspec: {compositeTypeRef: {apiVersion: capstan.dev/v1alpha1, kind: Thing}}\n")

			path, err := stored(written, composition, dir)
			if err != nil || (path != written) != tc.copied {
				t.Fatalf("%s Got %q, %v", tc.reason, path, err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := yaml.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"apiVersion": "capstan.dev/v1alpha1", "kind": "Thing", "spec": map[string]any{"size": 3.0}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
