// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestDatabaseImport: a Database is filled from a running server, which is another Database here, by the login of a consumer that
// only reads, while a client writes there. What stands in the way is reported first. No consumer logs in before the cut-over, which waits for
// that client. After it every acknowledged row is there, and a client that tried all the time writes on.
func TestDatabaseImport(t *testing.T) {
	ns := namespace(t)
	source := database(ns, "orders-db", func(d *v1alpha1.Database) {
		d.Spec.Replicas, d.Spec.Availability.Spread = 1, v1alpha1.SpreadAnywhere
		d.Spec.Config = map[string]v1alpha1.ParameterValue{"wal_level": "logical"}
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}, {Name: "writer"}, {Name: "mover", Access: v1alpha1.ConsumerReadOnly, Replication: true}}
	})
	createDatabase(t, source)
	app := psql(t, source, "app")
	app.must(t, `create table ledger (id serial primary key, note text); create table nokey (a int);
		insert into ledger (note) select 'row ' || g from generate_series(1, 5000) g`)
	before := write(t, source, leader(t, source).Spec.NodeName, byService, 0)

	d := database(ns, "moved", func(d *v1alpha1.Database) {
		d.Spec.Replicas, d.Spec.Availability.Spread = 2, v1alpha1.SpreadAnywhere
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}, {Name: "writer"}}
		d.Spec.From = &v1alpha1.DatabaseSource{Server: &v1alpha1.DatabaseSourceServer{
			// The connection Secret of a consumer has the keys of an import.
			Host: source.Name + "-rw." + ns + ".svc", CredentialsSecretRef: v1alpha1.LocalReference{Name: source.Name + "-mover"},
			Databases: []v1alpha1.ImportedDatabase{{Name: "moved", Source: "orders_db"}},
		}}
	})
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteDatabase(t, d) })
	begun := time.Now()
	within(t, creation, "it reports what stands in the way", databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionFalse, v1alpha1.ReasonImportIncompatible, "nokey", "replica identity full"))
	t.Logf("findings after %s", time.Since(begun).Round(time.Second))
	app.must(t, `alter table nokey add primary key (a)`)
	// The user of the import owns nothing, so the owner publishes the tables.
	publication := ""
	within(t, time.Minute, "it names the publication that it needs", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, ns, d.Name)
		if err != nil {
			return err
		}
		publication = regexp.MustCompile(`capstan_moved_[0-9a-f]+`).FindString(got.Status.GetCondition(v1alpha1.TypeImported).Message)
		if publication == "" {
			return errors.New("it does not")
		}

		return nil
	})
	app.must(t, `create publication `+publication+` for table ledger, nokey, account_rows`)
	within(t, 3*time.Minute, "it follows", databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionFalse, v1alpha1.ReasonImportFollowing, "spec.cutOver"))
	within(t, time.Minute, "no consumer logs in", databaseCondition(d, v1alpha1.TypeConsumersReady, corev1.ConditionFalse, v1alpha1.ReasonImporting))
	within(t, time.Minute, "it takes no writes", databaseCondition(d, v1alpha1.TypeAvailable, corev1.ConditionFalse, v1alpha1.ReasonImporting))
	app.must(t, `insert into ledger (note) select 'late ' || g from generate_series(1, 500) g; delete from ledger where id <= 10`)

	p := clientOf(d, "writer-after", "writer", writerImage())
	p.Spec.Containers[0].Args = []string{"--uri=$(URI)", "--name=after", "--for=3h"}
	start(t, p)
	after := writer{pod: p}

	patchSpec(t, d, `{"cutOver":{"id":"move-1"}}`)
	within(t, time.Minute, "it waits for the client of the source", databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionFalse, v1alpha1.ReasonCuttingOver, "move-1", "stop its clients"))
	begun = time.Now()
	written := before.end(t)
	if len(written.Lost) > 0 || written.Acknowledged == 0 {
		t.Errorf("the source has lost %d of %d rows", len(written.Lost), written.Acknowledged)
	}
	t.Logf("%d writes to the source failed: %v", written.Failed, written.Errors)
	within(t, 3*time.Minute, "it is cut over", databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionTrue, v1alpha1.ReasonCutOver, "move-1", "left at the source", publication))
	t.Logf("cut over %s after the client of the source was asked to end", time.Since(begun).Round(time.Second))
	own := psql(t, d, "writer")
	gap := ""
	within(t, time.Minute, "the other client writes", func(context.Context) error {
		out, err := own.run(t, `select extract(epoch from min(at) filter (where writer = 'after') - max(at) filter (where writer <> 'after')) from account_rows`)
		if gap = strings.TrimSpace(out); err == nil && gap == "" {
			err = errors.New("it has not written")
		}

		return err
	})
	t.Logf("writes waited for %s s", gap)
	for _, query := range []string{
		`select count(*) || ' ' || md5(string_agg(r::text, ' ' order by r.n)) from account_rows r where writer <> 'after'`,
		`select count(*) || ' ' || md5(string_agg(r::text, ' ' order by r.id)) from ledger r`,
	} {
		if here, there := own.must(t, query), app.must(t, query); here != there {
			t.Errorf("%s: got %q, want %q", query, here, there)
		}
	}
	got, want := own.must(t, `select count(*) from account_rows where writer <> 'after'`), strconv.FormatInt(written.Acknowledged+written.Surplus, 10)
	t.Logf("%d rows were acknowledged by the source, and %s are there", written.Acknowledged, got)
	if got != want {
		t.Errorf("%s rows are there, want %s", got, want)
	}
	if a := after.end(t); len(a.Lost) > 0 || a.Acknowledged == 0 {
		t.Errorf("%d of %d rows are lost after the cut-over", len(a.Lost), a.Acknowledged)
	}
	if got := own.must(t, `select count(*)::text || ' ' || max(id)::text from ledger`); got != "5490 5500" {
		t.Errorf("the rows are %s, want 5490 5500", got)
	}
	if got := own.must(t, `insert into ledger (note) values ('own') returning id`); got != "5501" {
		t.Errorf("the next row has number %s, want 5501: the sequence was not copied", got)
	}
	own.must(t, `alter table ledger add column mine text`)
	within(t, creation, "it is Ready", databaseCondition(d, "Ready", corev1.ConditionTrue, "Available"))
	if got := app.must(t, `select count(*) from pg_replication_slots where slot_name like 'capstan\_%'`); got != "0" {
		t.Errorf("the source keeps %s slots", got)
	}
}
