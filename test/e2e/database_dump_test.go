// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestDatabaseDump: a Database is filled from two files that pg_dump wrote, which lie in a Bucket. A file that is missing is reported
// first, and nothing is restored. Afterwards consumers log in, and no other member of the Database lacks a row.
func TestDatabaseDump(t *testing.T) {
	ns := namespace(t)
	source := database(ns, "orders-db", func(d *v1alpha1.Database) {
		d.Spec.Replicas, d.Spec.Availability.Spread = 1, v1alpha1.SpreadAnywhere
	})
	createDatabase(t, source)
	app := psql(t, source, "app")
	app.must(t, `create table ledger (id serial primary key, note text); create view late as select id from ledger where id > 4990;
		insert into ledger (note) select 'row ' || g || E'\t\\' from generate_series(1, 5000) g`)
	shelf := newShelf(t, ns, "dumps-bucket")
	dump := func(args ...string) []byte {
		out, err := execIn(t.Context(), app.pod, "client", "", append([]string{pgmember.Programs(source.Spec.Version) + "/pg_dump"}, args...)...)
		if err != nil {
			t.Fatalf("cannot dump: %v: %s", err, out)
		}

		return []byte(out)
	}
	put := func(key string, content []byte) {
		if _, err := shelf.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &shelf.bucket, Key: aws.String(key), Body: bytes.NewReader(content)}); err != nil {
			t.Fatal(err)
		}
	}
	put("legacy/orders.dump", dump("-Fc"))

	d := database(ns, "filled", func(d *v1alpha1.Database) {
		d.Spec.Replicas, d.Spec.Availability.Spread = 2, v1alpha1.SpreadAnywhere
		d.Spec.Databases = []v1alpha1.LogicalDatabase{{Name: "orders"}, {Name: "copy"}}
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app", Database: "orders"}, {Name: "other", Database: "copy"}}
		d.Spec.From = &v1alpha1.DatabaseSource{Dump: &v1alpha1.DatabaseSourceDump{
			ConnectionSecretRef: v1alpha1.LocalReference{Name: "dumps-bucket"},
			Databases:           []v1alpha1.DumpedDatabase{{Name: "orders", Path: "legacy/orders.dump"}, {Name: "copy", Path: "legacy/orders.sql.gz"}},
		}}
	})
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteDatabase(t, d) })
	within(t, creation, "it reports the file that is missing",
		databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionFalse, v1alpha1.ReasonImportIncompatible, "legacy/orders.sql.gz"))
	within(t, time.Minute, "no consumer logs in", databaseCondition(d, v1alpha1.TypeConsumersReady, corev1.ConditionFalse, v1alpha1.ReasonImporting))

	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(dump("-Fp")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	put("legacy/orders.sql.gz", packed.Bytes())
	begun := time.Now()
	within(t, 3*time.Minute, "both are restored", databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionTrue, v1alpha1.ReasonDumpRestored))
	t.Logf("restored %s after the second file came", time.Since(begun).Round(time.Second))
	within(t, creation, "it is Ready", databaseCondition(d, "Ready", corev1.ConditionTrue, "Available"))

	const rows = `select count(*) || ' ' || md5(string_agg(r::text, ' ' order by r.id)) from ledger r`
	want := app.must(t, rows)
	for _, consumer := range []string{"app", "other"} {
		own := psql(t, d, consumer)
		if got := own.must(t, rows); got != want {
			t.Errorf("consumer %s sees %s, want %s", consumer, got, want)
		}
		if got := own.must(t, `select count(*) from late`); got != "10" {
			t.Errorf("consumer %s sees %s rows by the view, want 10", consumer, got)
		}
		if got := own.must(t, `insert into ledger (note) values ('own') returning id`); got != "5001" {
			t.Errorf("consumer %s gets the number %s for the next row, want 5001", consumer, got)
		}
		own.must(t, `alter table ledger add column mine text`)
	}
}
