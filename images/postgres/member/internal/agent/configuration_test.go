// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/lines"
)

func TestConfiguration(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		apart, json bool
		parameters  Parameters
		want        []string
	}{
		"Shared": {"A member reads what all share, and what its image has.", false, false, nil, []string{"1-all.yaml", "3-own.yaml"}},
		"Apart":  {"A volume for the log adds to it.", true, false, nil, []string{"1-all.yaml", "2-wal.yaml", "3-own.yaml"}},
		"JSON":   {"So do marks of lines.", false, true, nil, []string{"1-all.yaml", "3-own.yaml"}},
		"Both":   {"Both are read.", true, true, nil, []string{"1-all.yaml", "2-wal.yaml", "3-own.yaml"}},
		"Pages":  {"So do parameters that follow from the pod.", false, false, Parameters{"huge_pages": "on"}, []string{"1-all.yaml", "3-own.yaml"}},
		"All":    {"They do not replace marks.", true, true, Parameters{"huge_pages": "on"}, []string{"1-all.yaml", "2-wal.yaml", "3-own.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "patroni")
			c := configuration{apart: tc.apart, parameters: tc.parameters}
			for range 2 { // Patroni may start again.
				if tc.json {
					c.marks = lines.NewMarks() // A container that starts again has others.
				}
				if path, err := c.prepare(folder); err != nil || path != folder {
					t.Fatalf("%s got %s: %v", tc.reason, path, err)
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
			raw, err := os.ReadFile(filepath.Join(folder, "3-own.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var own map[string]any
			if err := yaml.Unmarshal(raw, &own); err != nil {
				t.Fatal(err)
			}
			parameters, want := map[string]any{}, map[string]any{}
			for name, value := range tc.parameters {
				parameters[name] = value
			}
			if tc.json {
				want["log"], parameters["log_line_prefix"] = map[string]any{"format": c.marks.Patroni()}, c.marks.Server()
			}
			want["postgresql"] = map[string]any{"parameters": parameters, "pre_promote": "/usr/local/bin/capstan-member before-promotion"}
			if diff := cmp.Diff(want, own); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParameters(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         Parameters
		fails        bool
	}{
		"Some":   {"They come as JSON.", `{"huge_pages":"on","shared_buffers":"8GB"}`, Parameters{"huge_pages": "on", "shared_buffers": "8GB"}, false},
		"Broken": {"A member that does not know them must not start.", `huge_pages=on`, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			var got Parameters
			if err := got.UnmarshalText([]byte(tc.text)); (err != nil) != tc.fails {
				t.Fatalf("%s got the error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
