// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestShell runs a client by a kubectl that prints its arguments.
func TestShell(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	pod := func(name, base, member, role string) *unstructured.Unstructured {
		return object(t, `
apiVersion: v1
kind: Pod
metadata: {name: `+name+`, namespace: demo, labels: {capstan.dev/database: `+base+`, capstan.dev/member: `+member+`, capstan.dev/role: `+role+`}}
`, nil)
	}
	cases := map[string]struct {
		reason string
		args   []string
		edit   func(spec, status map[string]any)
		want   string
		err    string
	}{
		"Leader": {
			reason: "The leader of the generation that serves, as superuser.", args: []string{"psql", "orders"},
			want: "exec --stdin orders-g2-a-0 --namespace=demo --container=postgres -- psql --dbname=orders",
		},
		"Arguments": {
			reason: "Arguments of the client are its own.", args: []string{"psql", "database/orders", "--", "-tAc", "SELECT 1"},
			want: "exec --stdin orders-g2-a-0 --namespace=demo --container=postgres -- psql --dbname=orders -tAc SELECT 1",
		},
		"Connection": {
			reason: "kubectl connects to the same cluster.", args: []string{"psql", "orders", "--context=other", "--", "-l"},
			want: "exec --stdin orders-g2-a-0 --namespace=demo --container=postgres --context=other -- psql --dbname=orders -l",
		},
		"Consumer": {
			reason: "What a consumer creates belongs to the owner of the database.", args: []string{"psql", "orders", "--consumer=api"},
			want: "exec --stdin orders-g2-a-0 --namespace=demo --container=postgres -- env PGOPTIONS=-c role=orders_owner psql --dbname=orders",
		},
		"Reader": {
			reason: "A consumer that reads may not write.", args: []string{"psql", "orders", "--consumer=bi"}, edit: func(spec, _ map[string]any) {
				spec["databases"] = []any{map[string]any{"name": "first"}, map[string]any{"name": "other"}}
				spec["consumers"] = []any{map[string]any{"name": "bi", "database": "other", "access": "ReadOnly"}}
			},
			want: "exec --stdin orders-g2-a-0 --namespace=demo --container=postgres -- env PGOPTIONS=-c role=other_reader psql --dbname=other",
		},
		"Member": {
			reason: "A standby can be looked at.", args: []string{"psql", "orders", "--member=orders-g2-b"},
			want: "exec --stdin orders-g2-b-0 --namespace=demo --container=postgres -- psql --dbname=orders",
		},
		"MySQL": {
			reason: "Each engine has its client.", args: []string{"mysql", "orders"}, edit: func(spec, _ map[string]any) { spec["engine"] = "mysql" },
			want: "exec --stdin orders-g2-a-0 --namespace=demo --container=mysql -- mysql --socket=/run/mysqld/mysqld.sock --user=capstan_member --database=orders",
		},
		"WrongEngine":  {reason: "The right one is named.", args: []string{"mysql", "orders"}, err: "use kubectl capstan psql"},
		"NoConsumer":   {reason: "Names are known.", args: []string{"psql", "orders", "--consumer=x"}, err: "has no consumer x: choose one of api"},
		"NoMember":     {reason: "Names are known.", args: []string{"psql", "orders", "--member=x"}, err: "no pod of a member x runs: choose one of orders-g2-a, orders-g2-b"},
		"TwoDatabases": {reason: "Arguments of the client come after --.", args: []string{"psql", "orders", "SELECT", "1"}, err: "put the arguments of psql after --"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(object(t, orders, tc.edit),
				pod("orders-b-0", "orders", "orders-b", "replica"), pod("orders-g2-b-0", "orders.g2", "orders-g2-b", "replica"),
				pod("orders-g2-a-0", "orders.g2", "orders-g2-a", "leader"), pod("orders2-a-0", "orders2", "orders2-a", "leader"))
			out, err := r.run(t.Context(), "", tc.args...)
			want := tc.err
			if want == "" {
				want = "the client ended with code 3"
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("%s\nwant error %q, got %v", tc.reason, want, err)
			}
			if diff := cmp.Diff(tc.want, strings.Join(strings.Fields(out), " ")); diff != "" {
				t.Errorf("%s\nkubectl: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
