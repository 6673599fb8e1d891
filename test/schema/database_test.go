// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const databaseXRD = "apis/database/definition.yaml"

// database is a Database with these fields beside the four that it needs.
func database(t *testing.T, fields string) map[string]any {
	t.Helper()
	spec := map[string]any{"engine": "postgres", "version": "17", "replicas": int64(3), "storage": "50Gi"}
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(fields), &values); err != nil {
		t.Fatalf("bad YAML in a test: %v", err)
	}
	whole, ok := whole(values).(map[string]any)
	if !ok {
		t.Fatal("bad YAML in a test")
	}
	maps.Copy(spec, whole)
	return map[string]any{
		"apiVersion": "capstan.dev/v1alpha1", "kind": "Database",
		"metadata": map[string]any{"name": "orders-db", "namespace": "shop"}, "spec": spec,
	}
}

func TestDatabase(t *testing.T) {
	a := newAdmission(t, readXRD(t, databaseXRD))
	for name, tc := range map[string]struct{ reason, fields, want string }{
		"Nothing":         {reason: "Four fields are enough.", fields: `{}`},
		"Full":            {reason: "All of it together is fine.", fields: `{plan: small, availability: {spread: Nodes, profile: Fast, durability: Strict}, databases: [{name: orders}], consumers: [{name: api, database: orders, access: ReadOnly}], config: {work_mem: 64MB}, extensions: [uuid-ossp], network: {from: [{namespace: bi}, {cidr: 10.0.0.0/8}]}, tls: {issuerRef: {name: company}}}`},
		"Engine":          {reason: "Only what is implemented is taken.", fields: `{engine: mysql}`, want: "Unsupported value"},
		"MinorVersion":    {reason: "Minor versions are the platform's.", fields: `{version: "17.6"}`, want: "must be a major version"},
		"TenMembers":      {reason: "There are nine letters.", fields: `{replicas: 10}`, want: "less than or equal to 9"},
		"TinyStorage":     {reason: "A server needs room.", fields: `{storage: 10Mi}`, want: "must be a quantity of at least 1Gi"},
		"PlanAndSize":     {reason: "A plan says all.", fields: `{plan: small, resources: {cpu: "1"}}`, want: "set plan or resources, not both"},
		"UnknownDatabase": {reason: "A consumer connects to what there is.", fields: `{consumers: [{name: api, database: x}]}`, want: "database must be one of spec.databases"},
		"ReservedLogin":   {reason: "Names of Capstan's own objects are taken.", fields: `{consumers: [{name: members}]}`, want: "is one of the names that Capstan uses itself"},
		"MemberLogin":     {reason: "Letters are members.", fields: `{consumers: [{name: a}]}`, want: "must be none of a to i"},
		"ReservedName":    {reason: "The server has databases of its own.", fields: `{databases: [{name: template1}]}`, want: "must be lower case letters"},
		"ControlChar":     {reason: "A value is one line.", fields: `{config: {timezone: "a\nb"}}`, want: "must not have control characters"},
		"CIDRAndPods":     {reason: "A range has no pods.", fields: `{network: {from: [{cidr: 10.0.0.0/8, namespace: bi}]}}`, want: "set cidr, or namespace and podLabels"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, database(t, tc.fields))
			got := strings.Join(errs, "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("\n%s\nwant %q, got:\n%s", tc.reason, tc.want, got)
			}
		})
	}
}

func TestDatabaseChanges(t *testing.T) {
	a := newAdmission(t, readXRD(t, databaseXRD))
	for name, tc := range map[string]struct{ reason, before, after, want string }{
		"Grow":   {reason: "More storage may be asked for.", before: `{}`, after: `{storage: 80Gi}`},
		"Shrink": {reason: "Data does not shrink.", before: `{}`, after: `{storage: 10Gi}`, want: "cannot shrink"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(a.update(t, database(t, tc.before), database(t, tc.after)), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("\n%s\nwant %q, got:\n%s", tc.reason, tc.want, got)
			}
		})
	}
}
