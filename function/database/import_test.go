// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// importing is a Database that is filled from a server, with room for more fields.
const importing = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, databases: [{name: orders_db}],
	from: {server: {host: legacy.example, credentialsSecretRef: {name: legacy}, databases: [{name: orders_db, source: orders}], skip: [UnloggedTables, LargeObjects]}}%s}`

// imports world: one that runs and follows its source.
func imports(tb testing.TB) *world {
	tb.Helper()
	w := running(tb, fmt.Sprintf(importing, ""))
	w.imports = &observev1alpha1.ImportReport{State: observev1alpha1.ImportFollowing, Copied: 100, GapSeconds: 15, Message: "changes are applied"}
	w.react()
	return w
}

// hasEnded holds an import to be over: members that have lost their data do not import a second time beside the logins, and no missing
// report takes these away.
func hasEnded(t *testing.T, w *world) {
	t.Helper()
	if file := compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember); !strings.Contains(file, `"ended":true`) {
		t.Errorf("members are not told that the import has ended: %s", file)
	}
	w.imports = nil
	w.react()
	if w.pass(); len(w.logins()) == 0 {
		t.Error("without a report of the leader, logins go")
	}
}

// logins that the provider should make.
func (w *world) logins() []any {
	return compose.List(w.request.Observed[names.Access].Map(), "spec", "forProvider", "logins")
}

// TestImport: members know the source, nobody logs in before the cut-over, and conditions say so.
func TestImport(t *testing.T) {
	w := imports(t)
	p := w.pass()
	want := `"import":{"host":"legacy.example","port":5432,"tls":"verify-full","databases":[{"name":"orders_db","source":"orders"}],"skip":["LargeObjects","UnloggedTables"]}`
	if file := compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember); !strings.Contains(file, want) {
		t.Errorf("members are not told of the source: %s", file)
	}
	for name, expected := range map[string]string{
		"Imported": "False ImportFollowing", "Available": "False Importing", "ConsumersReady": "False Importing", "Updated": "True Updated", "Accepted": "True Valid",
	} {
		if s, reason, message := condition(p, name); s+" "+reason != expected {
			t.Errorf("%s is %s %s (%s), want %s", name, s, reason, message, expected)
		}
	}
	if _, _, message := condition(p, "Imported"); !strings.Contains(message, "about 15 seconds") || !strings.Contains(message, "spec.cutOver") {
		t.Errorf("the gap is not told beforehand: %s", message)
	}
	if got := w.logins(); len(got) > 0 {
		t.Errorf("consumers can log in, and write: %v", got)
	}
	if got := compose.List(w.request.Observed[names.Access].Map(), "spec", "forProvider", "databases"); len(got) != 1 {
		t.Errorf("the database is not made: %v", got)
	}
	if p.Ready {
		t.Error("it is ready, and a program that waits for it would begin with its migrations")
	}
	if st := told(t, p); st.Leader != "" || st.Import == nil || !st.Import.Importing || st.Import.CopiedPercent != 100 {
		t.Errorf("the status is %+v, leader %q", st.Import, st.Leader)
	}
}

// TestImportTells what its leader reports.
func TestImportTells(t *testing.T) {
	for state, want := range map[string]string{
		observev1alpha1.ImportChecking: "False ImportChecking", observev1alpha1.ImportIncompatible: "False ImportIncompatible", observev1alpha1.ImportCopying: "False ImportCopying",
		observev1alpha1.ImportFailing: "False ImportFailing", observev1alpha1.ImportCuttingOver: "False CuttingOver", "": "Unknown ImportUnknown",
	} {
		w := imports(t)
		w.imports = &observev1alpha1.ImportReport{State: state, Message: "it says why", Findings: []string{"wal_level of the source is replica"}}
		w.react()
		p := w.plan()
		s, reason, message := condition(p, "Imported")
		if s+" "+reason != want || p.Ready {
			t.Errorf("%q: Imported is %s %s, want %s; ready: %t", state, s, reason, want, p.Ready)
		}
		if state == observev1alpha1.ImportIncompatible && !strings.Contains(message, "wal_level") {
			t.Errorf("the condition does not have the findings: %s", message)
		}
	}
}

// TestCutOver: members cut over, that is remembered, and then consumers get their logins, for good.
func TestCutOver(t *testing.T) {
	w := imports(t)
	before := w.revisions()
	w.edit(fmt.Sprintf(importing, ", cutOver: {id: go, stopWrites: true}"))
	for range 3 {
		w.pass()
	}
	if file := compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember); !strings.Contains(file, `"cutOver":{"id":"go","stopWrites":true}`) {
		t.Errorf("members are not told to cut over: %s", file)
	}
	if w.remembers().Imported != nil || len(w.logins()) > 0 {
		t.Fatal("it is cut over before members say so")
	}
	w.imports = &observev1alpha1.ImportReport{State: observev1alpha1.ImportCutOver, CutOver: "go", GapSeconds: 4}
	w.react()
	w.pass() // it is remembered first
	if len(w.logins()) > 0 {
		t.Error("consumers get logins before the cut-over is remembered")
	}
	for range 4 {
		w.pass()
	}
	if m := w.remembers().Imported; m == nil || m.ID != "go" {
		t.Fatalf("the memory is %+v", w.remembers())
	}
	p := w.pass()
	for name, expected := range map[string]string{"Imported": "True CutOver", "Available": "True Leading", "ConsumersReady": "True ConsumersConnected"} {
		if s, reason, message := condition(p, name); s+" "+reason != expected {
			t.Errorf("%s is %s %s (%s), want %s", name, s, reason, message, expected)
		}
	}
	if !p.Ready || len(w.logins()) == 0 {
		t.Errorf("ready: %t, logins: %v", p.Ready, w.logins())
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("a cut-over restarts members: -before, +after:\n%s", diff)
	}
	if st := told(t, p).Import; st.Importing || st.CutOver != "go" || st.CutOverAt == nil {
		t.Errorf("the status is %+v", st)
	}
	hasEnded(t, w)
	credential := w.request.Observed[names.AccessCredential].Map()
	delete(compose.Map(credential, "status", "atProvider"), "remembered")
	delete(compose.Map(credential, "spec", "forProvider"), "remember")
	raw, err := json.Marshal(w.plan().Objects[names.Access].Object)
	if err != nil || !strings.Contains(string(raw), `"logins":[{`) {
		t.Errorf("without the record of the cut-over, logins go: %s, %v", raw, err)
	}
}

// TestCutOverSkipped: the id that a Database is created with ends no import.
func TestCutOverSkipped(t *testing.T) {
	w := imports(t)
	w.edit(fmt.Sprintf(importing, ", cutOver: {id: copied}"))
	w.imports.Skipped = "copied"
	w.react()
	if s, reason, message := condition(w.pass(), "Imported"); s+reason != "FalseCutOverSkipped" || !strings.Contains(message, "copied") {
		t.Errorf("Imported is %s %s: %s", s, reason, message)
	}
}

// TestImportRefuses what cannot work, with cause and remedy.
func TestImportRefuses(t *testing.T) {
	for _, c := range []struct{ reason, spec, want string }{
		{"Changes would be applied as superuser.", strings.Replace(fmt.Sprintf(importing, ""), `version: "17"`, `version: "15"`, 1), `spec.version: "15": spec.from.server needs version 16`},
		{"The database is not there.", strings.Replace(fmt.Sprintf(importing, ""), "[{name: orders_db, source", "[{name: other, source", 1), `spec.from.server.databases[0].name: "other": must be one of spec.databases`},
		{"Slots of one copy could be taken for the other's.", `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, databases: [{name: a}, {name: b}],
			from: {server: {host: legacy.example, credentialsSecretRef: {name: legacy}, databases: [{name: a, source: orders}, {name: b, source: orders}]}}}`, `is the source of both "a" and "b"`},
		{"The import would take the login away.", fmt.Sprintf(importing, ", consumers: [{name: app}, {name: capstan-restore}]"), `spec.consumers[1].name: "capstan-restore": its login`},
		{"A failover could lose what the source gave away.", fmt.Sprintf(importing, ", availability: {durability: Asynchronous}"), `spec.availability.durability: Asynchronous: a failover`},
		{"The restored data has no slot at the source.", fmt.Sprintf(importing, ", restore: {id: r1}"), `spec.restore.id: "r1"`},
		{"There is nothing to cut over.", `{engine: postgres, version: "17", replicas: 1, storage: 50Gi, cutOver: {id: go}}`, `spec.cutOver.id: "go": this Database is not imported`},
	} {
		w := newWorld(t, c.spec)
		if s, reason, message := condition(w.plan(), "Accepted"); s+reason != "FalseInvalidSpec" || !strings.Contains(message, c.want) {
			t.Errorf("%s Accepted is %s %s: %s", c.reason, s, reason, message)
		}
	}
}

// dumps is a Database that is filled from a dump, with room for more fields.
const dumps = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, databases: [{name: orders_db}, {name: audit}],
	from: {dump: {connectionSecretRef: {name: dumps}, databases: [{name: orders_db, path: dumps/orders.dump, format: Custom}, {name: audit, path: dumps/audit}]}}%s}`

// restores world: one whose leader restores dumps.
func restores(tb testing.TB) *world {
	tb.Helper()
	w := running(tb, fmt.Sprintf(dumps, ""))
	w.imports = &observev1alpha1.ImportReport{State: observev1alpha1.ImportCopying, Copied: 40, Message: "dumps are being restored"}
	w.react()
	return w
}

// TestDump: members know the dumps and the Secret of their bucket, nobody logs in before all are restored, and conditions say so. Afterwards
// consumers have logins for good, and no member restarts for it.
func TestDump(t *testing.T) {
	w := restores(t)
	p := w.pass()
	want := `"dumps":{"databases":[{"name":"orders_db","path":"dumps/orders.dump","format":"Custom"},{"name":"audit","path":"dumps/audit"}]}`
	if file := compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember); !strings.Contains(file, want) || strings.Contains(file, `"import"`) || strings.Contains(file, `"from"`) {
		t.Errorf("members are not told of the dumps: %s", file)
	}
	secret := ""
	for _, o := range w.request.Observed {
		for _, v := range compose.List(o.Map(), "spec", "template", "spec", "volumes") {
			if v, ok := v.(map[string]any); ok && compose.Text(v, "name") == names.VolumeImport {
				secret = compose.Text(v, "secret", "secretName")
			}
		}
	}
	if secret != "dumps" {
		t.Errorf("members have the Secret %q, want dumps", secret)
	}
	for name, expected := range map[string]string{
		"Imported": "False ImportCopying", "Available": "False Importing", "ConsumersReady": "False Importing", "Updated": "True Updated", "Accepted": "True Valid",
	} {
		if s, reason, message := condition(p, name); s+" "+reason != expected {
			t.Errorf("%s is %s %s (%s), want %s", name, s, reason, message, expected)
		}
	}
	if got := w.logins(); len(got) > 0 || p.Ready {
		t.Errorf("consumers can log in, and write: %v; ready: %t", got, p.Ready)
	}
	if st := told(t, p); st.Leader != "" || st.Import == nil || !st.Import.Importing || st.Import.CopiedPercent != 40 {
		t.Errorf("the status is %+v, leader %q", st.Import, st.Leader)
	}
	before := w.revisions()
	w.imports = &observev1alpha1.ImportReport{State: observev1alpha1.ImportRestored, Copied: 100}
	w.react()
	w.pass() // it is remembered first
	if len(w.logins()) > 0 {
		t.Error("consumers get logins before the end is remembered")
	}
	for range 4 {
		w.pass()
	}
	p = w.pass()
	for name, expected := range map[string]string{"Imported": "True DumpRestored", "Available": "True Leading", "ConsumersReady": "True ConsumersConnected"} {
		if s, reason, message := condition(p, name); s+" "+reason != expected {
			t.Errorf("%s is %s %s (%s), want %s", name, s, reason, message, expected)
		}
	}
	if m := w.remembers().Imported; m == nil || !p.Ready || len(w.logins()) == 0 {
		t.Errorf("remembered: %+v, ready: %t, logins: %v", m, p.Ready, w.logins())
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("the end restarts members: -before, +after:\n%s", diff)
	}
	if st := told(t, p).Import; st.Importing || st.CutOver != "" || st.CutOverAt == nil {
		t.Errorf("the status is %+v", st)
	}
	hasEnded(t, w)
}

// TestImportAlerts: an import that stands still is noticed, in words of what is imported, and not once it has ended.
func TestImportAlerts(t *testing.T) {
	ended := restores(t)
	ended.imports = &observev1alpha1.ImportReport{State: observev1alpha1.ImportRestored, Copied: 100}
	ended.react()
	for range 4 {
		ended.pass()
	}
	for name, tc := range map[string]struct {
		reason string
		w      *world
		want   []string
	}{
		"Server": {"Its disk fills.", imports(t), []string{"DatabaseImportBehind"}},
		"Dump":   {"Nobody can log in before every dump is restored.", restores(t), []string{"DatabaseDumpNotRestored"}},
		"Ended":  {"A dump is not read again.", ended, nil},
		"None":   {"Nothing is imported.", running(t, basic), nil},
	} {
		t.Run(name, func(t *testing.T) {
			tc.w.pass()
			var got []string
			for _, g := range compose.List(tc.w.request.Observed[names.Rules].Map(), "spec", "groups") {
				for _, r := range compose.List(g.(map[string]any), "rules") {
					r := r.(map[string]any)
					if strings.Contains(compose.Text(r, "expr"), "capstan_database_import_behind") {
						got = append(got, compose.Text(r, "alert"))
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDumpTells what its leader reports.
func TestDumpTells(t *testing.T) {
	for state, want := range map[string]string{
		observev1alpha1.ImportChecking: "False ImportChecking", observev1alpha1.ImportIncompatible: "False ImportIncompatible", observev1alpha1.ImportCopying: "False ImportCopying",
		observev1alpha1.ImportFailing: "False ImportFailing", observev1alpha1.ImportRestored: "False ImportCopying", "": "Unknown ImportUnknown",
		// Reports of an import from a server do not end this one.
		observev1alpha1.ImportCutOver: "False ImportChecking",
	} {
		w := restores(t)
		w.imports = &observev1alpha1.ImportReport{State: state, CutOver: "go", Message: "it says why", Findings: []string{"there is no object dumps/orders.dump"}}
		w.react()
		p := w.plan()
		s, reason, message := condition(p, "Imported")
		if s+" "+reason != want || p.Ready {
			t.Errorf("%q: Imported is %s %s, want %s; ready: %t", state, s, reason, want, p.Ready)
		}
		if state == observev1alpha1.ImportIncompatible && !strings.Contains(message, "spec.from.dump: ") && !strings.Contains(message, "there is no object") {
			t.Errorf("the condition does not have the findings: %s", message)
		}
	}
}

// TestDumpRefuses what cannot work, with cause and remedy.
func TestDumpRefuses(t *testing.T) {
	for _, c := range []struct{ reason, spec, want string }{
		{"The login of the restore would have rights of its own.", strings.Replace(fmt.Sprintf(dumps, ""), `version: "17"`, `version: "15"`, 1), `spec.version: "15": spec.from.dump needs version 16`},
		{"The database is not there.", strings.Replace(fmt.Sprintf(dumps, ""), "name: audit, path", "name: other, path", 1), `spec.from.dump.databases[1].name: "other": must be one of spec.databases`},
		{"The restore would take the login away.", fmt.Sprintf(dumps, ", consumers: [{name: app}, {name: capstan-restore}]"), `spec.consumers[1].name: "capstan-restore": its login`},
		{"A failover could lose what is not read again.", fmt.Sprintf(dumps, ", availability: {durability: Asynchronous}"), `spec.availability.durability: Asynchronous: a failover`},
		{"A generation beside it would be of nothing.", fmt.Sprintf(dumps, ", restore: {id: r1}"), `spec.restore.id: "r1"`},
		{"A dump has no cut-over.", fmt.Sprintf(dumps, ", cutOver: {id: go}"), `spec.cutOver.id: "go": this Database is not imported from a server`},
	} {
		w := newWorld(t, c.spec)
		if s, reason, message := condition(w.plan(), "Accepted"); s+reason != "FalseInvalidSpec" || !strings.Contains(message, c.want) {
			t.Errorf("%s Accepted is %s %s: %s", c.reason, s, reason, message)
		}
	}
}
