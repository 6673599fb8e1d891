// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/lines"
)

func TestConfiguration(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		apart, json bool
		want        []string
	}{
		"Shared": {"A member without anything of its own reads what all share.", false, false, nil},
		"Apart":  {"A volume for the log adds to it.", true, false, []string{"1-all.yaml", "2-wal.yaml"}},
		"JSON":   {"So do marks of lines.", false, true, []string{"1-all.yaml", "3-logs.yaml"}},
		"Both":   {"Both are read.", true, true, []string{"1-all.yaml", "2-wal.yaml", "3-logs.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "patroni")
			c := configuration{apart: tc.apart}
			for range 2 { // Patroni may start again.
				if tc.json {
					c.marks = lines.NewMarks() // A container that starts again has others.
				}
				path, err := c.prepare(folder)
				if err != nil {
					t.Fatal(err)
				}
				if shared := path == layout.Configuration; shared != (tc.want == nil) {
					t.Errorf("%s got %s", tc.reason, path)
				}
			}
			var got []string
			entries, _ := os.ReadDir(folder)
			for _, e := range entries {
				got = append(got, e.Name())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if !tc.json {
				return
			}
			raw, err := os.ReadFile(filepath.Join(folder, "3-logs.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var logs map[string]any
			if err := yaml.Unmarshal(raw, &logs); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"log":        map[string]any{"format": c.marks.Patroni()},
				"postgresql": map[string]any{"parameters": map[string]any{"log_line_prefix": c.marks.Server()}},
			}
			if diff := cmp.Diff(want, logs); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
