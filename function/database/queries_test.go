// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

const (
	headQueries = `{engine: postgres, version: "17", replicas: 1, storage: 5Gi, `
	oneQuery    = `{name: orders, sql: "select 1 as n", values: [number]}`
)

// TestQueries: the first query makes the exporter another, and all later ones reach it without a restart.
func TestQueries(t *testing.T) {
	w := running(t, headQueries+`monitoring: {queries: [`+oneQuery+`]}}`)
	containers := compose.List(w.request.Observed[names.MemberPrefix+"a"].Map(), "spec", "template", "spec", "containers")
	exporter, _ := containers[1].(map[string]any)
	if command := fmt.Sprint(exporter["command"], exporter["args"]); !strings.HasPrefix(command, "[/usr/local/bin/capstan-member] [exporter prometheus-postgres-exporter --collector") {
		t.Errorf("the exporter is %s", command)
	}
	if !strings.Contains(fmt.Sprint(exporter["volumeMounts"]), "/etc/capstan/config") {
		t.Errorf("the exporter mounts %v", exporter["volumeMounts"])
	}
	file := func() string { return compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember) }
	if want := `"queries":[{"name":"orders","database":"orders_db","sql":"select 1 as n","values":["number"],"intervalSeconds":60}]`; !strings.Contains(file(), want) {
		t.Errorf("members are told %s, want %s", file(), want)
	}
	w.edit(headQueries + `monitoring: {queries: [{name: orders, help: H, sql: "select 2 as m, 'x' as l", values: [m], labels: [l], intervalSeconds: 30}]}}`)
	if fields := effects(t, w); fields != "" {
		t.Errorf("another query restarts members: %s", fields)
	}
	w.pass()
	if want := `"labels":["l"],"intervalSeconds":30`; !strings.Contains(file(), want) {
		t.Errorf("members are told %s, want %s", file(), want)
	}
	w.edit(headQueries + `monitoring: {}}`)
	if fields := effects(t, w); fields != "spec.monitoring.queries" {
		t.Errorf("without queries %q restarts members", fields)
	}
}

func TestQueriesRefused(t *testing.T) {
	for name, tc := range map[string]struct{ reason, fields, want string }{
		"Fine":     {"One is enough.", `monitoring: {queries: [` + oneQuery + `]}`, ""},
		"Off":      {"Nothing would run them.", `monitoring: {enabled: false, queries: [` + oneQuery + `]}`, "spec.monitoring.queries: no exporter runs them"},
		"Database": {"It must be one of the Database's.", `monitoring: {queries: [{name: a, sql: s, values: [number], database: other}]}`, `spec.monitoring.queries[0].database: "other": is not one of spec.databases`},
		"Both":     {"A column is one of both.", `monitoring: {queries: [{name: a, sql: s, values: [number], labels: [number]}]}`, `spec.monitoring.queries[0].labels: "number": is in values`},
		"Collide": {
			"Two metrics of one name have other labels.", `monitoring: {queries: [{name: a, sql: s, values: [b_c]}, {name: a_b, sql: s, values: [c]}]}`,
			`spec.monitoring.queries[1].values: "c": query "a" has the metric capstan_query_a_b_c already`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			status, reason, message := condition(newWorld(t, headQueries+tc.fields+`}`).plan(), string(v1alpha1.TypeAccepted))
			if refused := status == "False"; refused != (tc.want != "") || !strings.Contains(message, tc.want) {
				t.Errorf("%s: %s, %s: %s, want %q", tc.reason, status, reason, message, tc.want)
			}
		})
	}
}

func TestQueriesHealthy(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, fields  string
		report          any
		status, because string
		says            string
	}{
		"None":    {"Without queries there is nothing to tell.", ``, nil, "", "", ""},
		"Pending": {"A member that has not reported is not known to be well.", `monitoring: {queries: [` + oneQuery + `]}`, nil, "Unknown", "QueriesUnknown", "orders-db-a does not report its queries"},
		"Well":    {"It says so itself.", `monitoring: {queries: [` + oneQuery + `]}`, map[string]any{}, "True", "QueriesSucceed", ""},
		"Failing": {
			"The message names query, member and remedy.", `monitoring: {queries: [` + oneQuery + `]}`,
			map[string]any{"failing": []any{map[string]any{"name": "orders", "message": "permission denied for table orders"}}},
			"False", "QueryFails",
			"spec.monitoring.queries[orders]: fails on member orders-db-a: permission denied for table orders: correct its SQL, or grant",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, headQueries+tc.fields+`}`)
			for _, v := range compose.List(w.request.Observed[names.Topology].Map(), "status", "atProvider", "members") {
				if m, _ := v.(map[string]any); tc.report != nil {
					m["queries"] = tc.report
				}
			}
			if status, reason, message := condition(w.plan(), string(v1alpha1.TypeQueriesHealthy)); status != tc.status || reason != tc.because || !strings.Contains(message, tc.says) {
				t.Errorf("%s: %s, %s: %s", tc.reason, status, reason, message)
			}
		})
	}
}
