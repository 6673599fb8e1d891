// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// withParameters is an object of a kind with spec.forProvider as YAML.
func withParameters(t *testing.T, apiVersion, kind, parameters string) map[string]any {
	t.Helper()
	p := map[string]any{}
	if err := yaml.Unmarshal([]byte(parameters), &p); err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": "orders-db", "namespace": "demo"},
		"spec":     map[string]any{"forProvider": p},
	}
}

const accessServer = `server: {host: orders-db-rw.demo.svc, passwordSecretRef: {name: a, key: password}, caSecretRef: {name: b, key: ca.crt}}
`

func TestAccess(t *testing.T) {
	a := newAdmission(t, readCRD(t, "package/provider/crds/access.capstan.dev_accesses.yaml"))
	login := func(fields string) string {
		return accessServer + "databases: [{name: orders}]\nlogins: [{" + fields + "}]"
	}
	const ref = ", passwordSecretRef: {name: c, key: password}"
	mysql := func(parameters string) string {
		return strings.Replace(parameters, "server: {", "server: {engine: mysql, ", 1)
	}
	long := strings.Repeat("x", 33)
	cases := map[string]struct{ reason, parameters, want string }{
		"MySQL":          {reason: "Another engine.", parameters: mysql(login("name: api, alternate: api-b, database: orders, access: ReadWrite" + ref))},
		"NoExtensions":   {reason: "None is asked for.", parameters: mysql(accessServer + "extensions: []")},
		"Engine":         {reason: "There are two.", parameters: strings.Replace(accessServer, "server: {", "server: {engine: mariadb, ", 1), want: "Unsupported value"},
		"Extensions":     {reason: "MySQL has none.", parameters: mysql(accessServer + "extensions: [pg_trgm]"), want: "engine mysql has no extensions: remove extensions"},
		"LongLogin":      {reason: "MySQL takes 32 characters.", parameters: mysql(login("name: " + long + ", database: orders, access: ReadWrite" + ref)), want: "at most 32 characters for engine mysql"},
		"LongAlternate":  {reason: "MySQL takes 32 characters.", parameters: mysql(login("name: api, alternate: " + long + ", database: orders, access: ReadWrite" + ref)), want: "at most 32 characters for engine mysql"},
		"LongInPostgres": {reason: "PostgreSQL takes more.", parameters: login("name: " + long + ", database: orders, access: ReadWrite" + ref)},
		"Smallest":       {reason: "A server is enough.", parameters: accessServer},
		"Login":          {reason: "A login of a database.", parameters: login("name: api, database: orders, access: ReadWrite" + ref)},
		"Host":           {reason: "A Service has three parts.", parameters: strings.Replace(accessServer, ".demo.svc", ".demo.svc.cluster.local", 1), want: "must be <Service>.<namespace>.svc"},
		"Address":        {reason: "An address is no Service.", parameters: strings.Replace(accessServer, "orders-db-rw.demo.svc", "10.0.0.1", 1), want: "must be <Service>.<namespace>.svc"},
		"NoDatabase":     {reason: "A login is for one of the databases.", parameters: login("name: api, database: other, access: ReadWrite" + ref), want: "database of each login must be one of databases"},
		"NoDatabases":    {reason: "Without any there is none.", parameters: accessServer + "logins: [{name: api, database: orders, access: ReadOnly" + ref + "}]", want: "database of each login must be one of databases"},
		"Capital":        {reason: "Names that need quotes are a trap.", parameters: login("name: Api, database: orders, access: ReadWrite" + ref), want: "must be lower case letters"},
		"Reserved":       {reason: "PostgreSQL keeps pg_ for itself.", parameters: login("name: pg_api, database: orders, access: ReadWrite" + ref), want: "not with pg_"},
		"AccessUnknown":  {reason: "There are two.", parameters: login("name: api, database: orders, access: Admin" + ref), want: "Unsupported value"},
		"Alternate":      {reason: "Two roles take turns.", parameters: login("name: api, alternate: api-b, retireWhenIdle: true, database: orders, access: ReadWrite" + ref)},
		"AlternateSame":  {reason: "One role cannot take turns with itself.", parameters: login("name: api, alternate: api, database: orders, access: ReadWrite" + ref), want: "alternate takes turns with name: choose another name"},
		"AlternateName":  {reason: "Names that need more than quotes are a trap.", parameters: login("name: api, alternate: Api, database: orders, access: ReadWrite" + ref), want: "must be lower case letters"},
		"AlternateTaken": {
			reason: "A second role is of one login.", want: "an alternate must not be another login",
			parameters: login("name: api, alternate: web, database: orders, access: ReadWrite" + ref + "}, {name: web, database: orders, access: ReadWrite" + ref),
		},
		"AlternateShared": {
			reason: "A second role is of one login.", want: "an alternate must not be another login",
			parameters: login("name: api, alternate: x-b, database: orders, access: ReadWrite" + ref + "}, {name: web, alternate: x-b, database: orders, access: ReadWrite" + ref),
		},
		"RetireAlone":  {reason: "Without a second role none is replaced.", parameters: login("name: api, retireWhenIdle: true, database: orders, access: ReadWrite" + ref), want: "retireWhenIdle needs alternate"},
		"DatabaseName": {reason: "Its roles have longer names.", parameters: accessServer + "databases: [{name: " + strings.Repeat("x", 49) + "}]", want: "Too long"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, withParameters(t, "access.capstan.dev/v1alpha1", "Access", tc.parameters))
			if all := strings.Join(errs, "\n"); tc.want == "" && all != "" || !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want an error with %q, got %q", tc.reason, tc.want, all)
			}
		})
	}
	o := withParameters(t, "access.capstan.dev/v1alpha1", "Access", accessServer)
	o["spec"].(map[string]any)["managementPolicies"] = []any{"*"}
	if _, errs := a.create(t, o); !strings.Contains(strings.Join(errs, "\n"), "an Access drops nothing") {
		t.Errorf("Nothing is deleted by an Access, got %q", errs)
	}
}

func TestRun(t *testing.T) {
	a := newAdmission(t, readCRD(t, "package/provider/crds/observe.capstan.dev_runs.yaml"))
	cases := map[string]struct{ reason, parameters, want string }{
		"Smallest": {reason: "A Job and its number are all.", parameters: `{job: fraud-r1, number: 1}`},
		"NoJob":    {reason: "Something is looked at.", parameters: `{number: 1}`, want: "job: Required value"},
		"Zero":     {reason: "Runs are counted from one.", parameters: `{job: fraud-r1, number: 0}`, want: "greater than or equal to 1"},
		"Name":     {reason: "Labels of pods have the name of the Job.", parameters: `{job: fraud.r1, number: 1}`, want: "must be the name of a Job"},
		"Others":   {reason: "Jobs of other namespaces have no name here.", parameters: `{job: shop/fraud-r1, number: 1}`, want: "must be the name of a Job"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, withParameters(t, "observe.capstan.dev/v1alpha1", "Run", tc.parameters))
			if all := strings.Join(errs, "\n"); tc.want == "" && all != "" || !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want an error with %q, got %q", tc.reason, tc.want, all)
			}
		})
	}
	o := withParameters(t, "observe.capstan.dev/v1alpha1", "Run", `{job: fraud-r1, number: 1}`)
	o["spec"].(map[string]any)["managementPolicies"] = []any{"*"}
	if _, errs := a.create(t, o); !strings.Contains(strings.Join(errs, "\n"), "a Run changes nothing") {
		t.Errorf("A Run only observes, got %q", errs)
	}
}

func TestFlinkJob(t *testing.T) {
	a := newAdmission(t, readCRD(t, "package/provider/crds/observe.capstan.dev_flinkjobs.yaml"))
	cases := map[string]struct{ reason, parameters, want string }{
		"Smallest": {reason: "A Pipeline is all.", parameters: `{pipeline: clicks}`},
		"None":     {reason: "Something is looked at.", parameters: `{}`, want: "pipeline: Required value"},
		"Others":   {reason: "Pipelines of other namespaces have no name here.", parameters: `{pipeline: shop/clicks}`, want: "must be the name of a Pipeline"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, withParameters(t, "observe.capstan.dev/v1alpha1", "FlinkJob", tc.parameters))
			if all := strings.Join(errs, "\n"); tc.want == "" && all != "" || !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want an error with %q, got %q", tc.reason, tc.want, all)
			}
		})
	}
	o := withParameters(t, "observe.capstan.dev/v1alpha1", "FlinkJob", `{pipeline: clicks}`)
	o["spec"].(map[string]any)["managementPolicies"] = []any{"*"}
	if _, errs := a.create(t, o); !strings.Contains(strings.Join(errs, "\n"), "a FlinkJob changes nothing") {
		t.Errorf("A FlinkJob only observes, got %q", errs)
	}
}

func TestTopology(t *testing.T) {
	a := newAdmission(t, readCRD(t, "package/provider/crds/observe.capstan.dev_topologies.yaml"))
	cases := map[string]struct{ reason, parameters, want string }{
		"Smallest": {reason: "A name is enough.", parameters: `database: orders-db`},
		"Secrets":  {reason: "Secrets of the Database.", parameters: `{database: orders-db, removeSecrets: [orders-db-members, orders-db-server]}`},
		"Others":   {reason: "Those of others are not to be removed.", parameters: `{database: orders-db, removeSecrets: [orders-db-members, web-tls]}`, want: "must begin with the name of the database"},
		"Itself":   {reason: "Nor one that only begins alike.", parameters: `{database: orders-db, removeSecrets: [orders-db2]}`, want: "must begin with the name of the database"},
		"Later":    {reason: "A later generation has a dot in its name, and the Secrets of the Database.", parameters: `{database: orders-db.g2, scope: orders-db.g2-3f2a9c1b, removeSecrets: [orders-db-members]}`},
		"NotLater": {reason: "Nor those of others.", parameters: `{database: orders-db.g2, removeSecrets: [orders-dbx-members]}`, want: "must begin with the name of the database"},
		"Scope":    {reason: "A scope begins names of ConfigMaps.", parameters: `{database: orders-db, scope: Orders}`, want: "must be lower case letters"},
		"None":     {reason: "Something is looked at.", parameters: `{}`, want: "database: Required value"},
		"Move":     {reason: "A switchover goes from one member to another.", parameters: `{database: orders-db, switchover: {id: "1", from: orders-db-a}}`, want: "switchover.to: Required value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, withParameters(t, "observe.capstan.dev/v1alpha1", "Topology", tc.parameters))
			if all := strings.Join(errs, "\n"); tc.want == "" && all != "" || !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want an error with %q, got %q", tc.reason, tc.want, all)
			}
		})
	}
	o := withParameters(t, "observe.capstan.dev/v1alpha1", "Topology", `database: orders-db`)
	o["spec"].(map[string]any)["managementPolicies"] = []any{"*"}
	if _, errs := a.create(t, o); !strings.Contains(strings.Join(errs, "\n"), "must be Observe, Delete, and Create and Update for a switchover") {
		t.Errorf("A Topology makes nothing by itself, got %q", errs)
	}
}
