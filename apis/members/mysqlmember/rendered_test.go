// SPDX-License-Identifier: Apache-2.0

package mysqlmember

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestRenderedByFunction decodes what the function renders for the examples, which has no field that members do not know.
func TestRenderedByFunction(t *testing.T) {
	files, err := filepath.Glob("../../../examples/database/mysql*/want.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	member := regexp.MustCompile(`(?m)^ +member\.json: '(\{.*\})'$`)
	dynamic := regexp.MustCompile(`(?m)^ +config: '(\{.*\})'$`)
	found := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range member.FindAllSubmatch(raw, -1) {
			found++
			var c Config
			decodes(t, m[1], &c)
			if c.Generation < 1 || c.Domain == "" {
				t.Errorf("%s: member.json lacks a generation or a domain: %s", file, m[1])
			}
		}
		for _, m := range dynamic.FindAllSubmatch(raw, -1) {
			found++
			var d Dynamic
			decodes(t, m[1], &d)
			if len(d.Parameters) == 0 {
				t.Errorf("%s: config lacks parameters: %s", file, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("no example has a member.json or a config")
	}
}

func decodes(t *testing.T, raw []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Errorf("cannot decode %s: %v", raw, err)
	}
}
