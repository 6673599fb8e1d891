// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestDatabaseImport: a Database is filled from a running server, which is another Database here, by the login of a consumer that
// only reads. What stands in the way is reported first. No consumer logs in before the cut-over, and after it every row is there.
func TestDatabaseImport(t *testing.T) {
	ns := namespace(t)
	source := database(ns, "orders-db", func(d *v1alpha1.Database) {
		d.Spec.Replicas, d.Spec.Availability.Spread = 1, v1alpha1.SpreadAnywhere
		d.Spec.Config = map[string]v1alpha1.ParameterValue{"wal_level": "logical"}
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}, {Name: "mover", Access: v1alpha1.ConsumerReadOnly, Replication: true}}
	})
	createDatabase(t, source)
	app := psql(t, source, "app")
	app.must(t, `create table ledger (id serial primary key, note text); create table nokey (a int);
		insert into ledger (note) select 'row ' || g from generate_series(1, 5000) g`)

	d := database(ns, "moved", func(d *v1alpha1.Database) {
		d.Spec.Replicas, d.Spec.Availability.Spread = 2, v1alpha1.SpreadAnywhere
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
	app.must(t, `create publication `+publication+` for table ledger, nokey`)
	within(t, 3*time.Minute, "it follows", databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionFalse, v1alpha1.ReasonImportFollowing, "spec.cutOver"))
	within(t, time.Minute, "no consumer logs in", databaseCondition(d, v1alpha1.TypeConsumersReady, corev1.ConditionFalse, v1alpha1.ReasonImporting))
	within(t, time.Minute, "it takes no writes", databaseCondition(d, v1alpha1.TypeAvailable, corev1.ConditionFalse, v1alpha1.ReasonImporting))
	app.must(t, `insert into ledger (note) select 'late ' || g from generate_series(1, 500) g; delete from ledger where id <= 10`)

	patchSpec(t, d, `{"cutOver":{"id":"move-1"}}`)
	begun = time.Now()
	within(t, 3*time.Minute, "it is cut over", databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionTrue, v1alpha1.ReasonCutOver, "move-1", "left at the source", publication))
	t.Logf("cut over %s after the request", time.Since(begun).Round(time.Second))
	own := psql(t, d, "app")
	t.Logf("a consumer logs in %s after the request", time.Since(begun).Round(time.Second))
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
