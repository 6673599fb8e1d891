// SPDX-License-Identifier: Apache-2.0

package database

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/database/names"
)

// TestPlacement puts every pod of a Database where spec.pod says, also what runs beside the members.
func TestPlacement(t *testing.T) {
	w := running(t, `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pooler: {}, backup: {to: {volume: {size: 20Gi}}, schedule: "0 1 * * *"},
		pod: {nodeSelector: {example.org/pool: databases}, tolerations: [{key: dedicated, value: databases, effect: NoSchedule}], priorityClassName: databases},
		podMetadata: {labels: {example.org/team: orders}, annotations: {example.org/contact: orders team}}}`)
	p := w.plan()
	for name, tc := range map[string]struct {
		reason string
		path   []string
	}{
		"member-a":       {"Members hold the data.", []string{"spec", "template", "spec"}},
		names.Pooler:     {"Poolers are on the way to them.", []string{"spec", "template", "spec"}},
		names.Repository: {"So is the host of their backups.", []string{"spec", "template", "spec"}},
		names.Backup:     {"A backup's pod reaches only where the members are.", []string{"spec", "jobTemplate", "spec", "template", "spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := composetest.Decode(p.Objects[name].Object)
			if err != nil {
				t.Fatal(err)
			}
			pod := compose.Map(o.Map(), tc.path...)
			got := map[string]any{"nodeSelector": pod["nodeSelector"], "priorityClassName": pod["priorityClassName"], "toleration": compose.List(pod, "tolerations")[0]}
			want := map[string]any{
				"nodeSelector": map[string]any{"example.org/pool": "databases"}, "priorityClassName": "databases",
				"toleration": map[string]any{"key": "dedicated", "value": "databases", "effect": "NoSchedule"},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	member, err := composetest.Decode(p.Objects["member-a"].Object)
	if err != nil {
		t.Fatal(err)
	}
	if got := compose.Text(member.Map(), "spec", "template", "metadata", "labels", "example.org/team"); got != "orders" {
		t.Errorf("the label of the members' pods is %q", got)
	}
	if got := compose.Text(member.Map(), "spec", "template", "metadata", "annotations", "example.org/contact"); got != "orders team" {
		t.Errorf("the annotation of the members' pods is %q", got)
	}
}
