// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// TestLogs: JSON reaches the program in members and poolers, and the exporter. What servers write stays the same for all members: each has
// marks of its own. Text is what was before the field.
func TestLogs(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, fields string
		json           bool
	}{
		"Default": {"Without the field nothing is told.", ``, false},
		"Text":    {"Text means the same.", `, logs: {format: Text}`, false},
		"JSON":    {"All are told.", `, logs: {format: JSON}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, `{engine: postgres, version: "17", replicas: 1, storage: 5Gi, pooler: {}`+tc.fields+`}`)
			for _, object := range []string{names.MemberPrefix + "a", names.Pooler} {
				containers := compose.List(w.request.Observed[object].Map(), "spec", "template", "spec", "containers")
				program, _ := containers[0].(map[string]any)
				told := false
				for _, v := range compose.List(program, "env") {
					e, _ := v.(map[string]any)
					told = told || e["name"] == "CAPSTAN_LOGS" && e["value"] == "JSON"
				}
				if told != tc.json {
					t.Errorf("%s %s: told is %t", tc.reason, object, told)
				}
				if len(containers) == 1 {
					continue
				}
				exporter, _ := containers[1].(map[string]any)
				args := compose.List(exporter, "args")
				if last := args[len(args)-1]; (last == "--log.format=json") != tc.json {
					t.Errorf("%s The exporter has the arguments %v", tc.reason, args)
				}
			}
			dynamic := compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig)
			if !strings.Contains(dynamic, `"log_line_prefix":"%m [%p] %q%u@%d/%a "`) {
				t.Errorf("%s The configuration is %s", tc.reason, dynamic)
			}
			w.edit(`{engine: postgres, version: "17", replicas: 1, storage: 5Gi, pooler: {}}`)
			if restarts := strings.Contains(effects(t, w), "spec.logs.format"); restarts != tc.json {
				t.Errorf("%s To remove it restarts: %t", tc.reason, restarts)
			}
		})
	}
}

// effects of the change that the spec requests, as fields.
func effects(t *testing.T, w *world) string {
	t.Helper()
	change := told(t, w.plan()).Change
	if change == nil {
		return ""
	}
	var fields []string
	for _, e := range change.Effects {
		fields = append(fields, e.Field)
	}
	return strings.Join(fields, " ")
}
