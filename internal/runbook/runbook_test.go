// SPDX-License-Identifier: Apache-2.0

package runbook

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Places of alerts: what every example composes, and the rules that a platform team applies itself.
var places = []string{"../../examples/*/*/want.yaml", "../../package/monitoring/prometheusrule.yaml", "../../package/monitoring/rules.yaml"}

var (
	alert   = regexp.MustCompile(`(?m)^ *-? *alert: (\w+)$`)
	link    = regexp.MustCompile(`(?m)^ *` + Annotation + `: "?([^"\n]+)"?$`)
	heading = regexp.MustCompile(`(?m)^### (\w+)$`)
)

// TestEveryAlertHasAHeading holds the page of alerts to what exists: each alert has a link to its heading there, and no heading is left over.
func TestEveryAlertHasAHeading(t *testing.T) {
	page, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(string(page), -1) {
		headings[m[1]] = true
	}
	alerts := map[string]bool{}
	for _, place := range places {
		files, err := filepath.Glob(place)
		if err != nil || len(files) == 0 {
			t.Fatalf("there should be files %s: %v", place, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			named, linked := alert.FindAllStringSubmatch(string(text), -1), map[string]bool{}
			for _, m := range link.FindAllStringSubmatch(string(text), -1) {
				linked[m[1]] = true
			}
			for _, m := range named {
				alerts[m[1]] = true
				if !linked[URL(Page, m[1])] {
					t.Errorf("%s: alert %s should link to %s", file, m[1], URL(Page, m[1]))
				}
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(alerts)), slices.Sorted(maps.Keys(headings))); diff != "" {
		t.Errorf("docs/alerts.md should have a heading for each alert (-alerts +headings):\n%s", diff)
	}
}

// TestEveryAlertIsInAnExample finds the alerts in the source of the planners: one that no example composes would be missed above.
func TestEveryAlertIsInAnExample(t *testing.T) {
	quoted := regexp.MustCompile(`"((?:Database|Algorithm)[A-Z]\w+)"`)
	page, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"../../function/algorithm/monitoring.go"}
	for _, places := range []string{"../../function/database/monitoring/*.go", "../../function/database/engine/*/alerts.go"} {
		found, err := filepath.Glob(places)
		if err != nil || len(found) == 0 {
			t.Fatalf("there should be alerts in %s: %v", places, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(string(page), "\n### "+m[1]+"\n") {
				t.Errorf("%s: %s should have a heading in docs/alerts.md, and an example that composes it", file, m[1])
			}
		}
	}
}
