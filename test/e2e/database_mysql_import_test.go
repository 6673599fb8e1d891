// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestDatabaseMySQLImport: a Database of MySQL is filled from a running server, which is another Database here, while a client writes there. What
// stands in the way is reported first. No consumer logs in before the cut-over, which waits for that client. After it every acknowledged row is there.
func TestDatabaseMySQLImport(t *testing.T) {
	ns := namespace(t)
	of := func(name string, replicas int32) *v1alpha1.Database {
		return mysqlDatabase(ns, func(d *v1alpha1.Database) {
			d.Name, d.Spec.Replicas, d.Spec.Availability.Spread = name, replicas, v1alpha1.SpreadAnywhere
			d.Spec.Databases = []v1alpha1.LogicalDatabase{{Name: "orders"}}
			d.Spec.Consumers = []v1alpha1.Consumer{{Name: "api"}, {Name: "writer"}}
		})
	}
	source := of("orders-db", 1)
	createDatabase(t, source)
	app := connect(t, source, "api")
	app.must(t, dialectOf(source).thousand+`; CREATE VIEW some AS SELECT n FROM kept WHERE n < 10`)
	before := write(t, source, leader(t, source).Spec.NodeName, byService, 0)
	shell(t, leader(t, source), `mysql --no-defaults --socket=/run/mysqld/mysqld.sock --user=capstan_member -e "
		CREATE USER mover IDENTIFIED WITH caching_sha2_password BY 'of-a-test' REQUIRE SSL;
		GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO mover;
		GRANT SELECT, LOCK TABLES, SHOW VIEW, TRIGGER, EVENT, EXECUTE ON orders.* TO mover"`)
	login, err := get(t.Context(), &corev1.Secret{}, ns, source.Name+"-api")
	if err != nil {
		t.Fatal(err)
	}
	host := source.Name + "-rw." + ns + ".svc"
	if err := kube.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "legacy", Namespace: ns}, Data: map[string][]byte{
		"host": []byte(host), "username": []byte("mover"), "password": []byte("of-a-test"), "ca.crt": login.Data["ca.crt"],
	}}); err != nil {
		t.Fatal(err)
	}

	d := of("moved", 3)
	d.Spec.From = &v1alpha1.DatabaseSource{Server: &v1alpha1.DatabaseSourceServer{Host: host, CredentialsSecretRef: v1alpha1.LocalReference{Name: "legacy"}}}
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteDatabase(t, d) })
	within(t, creation, "it reports what stands in the way", databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionFalse, v1alpha1.ReasonImportIncompatible, "view some", "StoredObjects"))
	app.must(t, `DROP VIEW some`)
	within(t, 3*time.Minute, "it follows", databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionFalse, v1alpha1.ReasonImportFollowing, "spec.cutOver"))
	within(t, time.Minute, "no consumer logs in", databaseCondition(d, v1alpha1.TypeConsumersReady, corev1.ConditionFalse, v1alpha1.ReasonImporting))
	within(t, time.Minute, "it takes no writes", databaseCondition(d, v1alpha1.TypeAvailable, corev1.ConditionFalse, v1alpha1.ReasonImporting))

	former := leader(t, d)
	if err := kube.Delete(t.Context(), &former); err != nil {
		t.Fatal(err)
	}
	within(t, creation, "another member leads", func(context.Context) error {
		if leader(t, d).UID == former.UID {
			return errors.New("the former one does")
		}

		return nil
	})
	app.must(t, `DELETE FROM kept WHERE n <= 10; ALTER TABLE kept ADD COLUMN note VARCHAR(20) DEFAULT 'late'`)
	within(t, 3*time.Minute, "it follows again", databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionFalse, v1alpha1.ReasonImportFollowing, "nothing waits"))

	patchSpec(t, d, `{"cutOver":{"id":"move-1"}}`)
	within(t, time.Minute, "it waits for the client of the source", databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionFalse, v1alpha1.ReasonCuttingOver, "move-1", "stop its clients"))
	written := before.end(t)
	if len(written.Lost) > 0 || written.Acknowledged == 0 {
		t.Errorf("the source has lost %d of %d rows", len(written.Lost), written.Acknowledged)
	}
	begun := time.Now()
	within(t, 3*time.Minute, "it is cut over", databaseCondition(d, v1alpha1.TypeImported, corev1.ConditionTrue, v1alpha1.ReasonCutOver, "move-1"))
	own := connect(t, d, "writer")
	within(t, time.Minute, "a consumer writes", func(context.Context) error {
		_, err := own.run(t, `INSERT INTO kept (n, note) VALUES (2000, 'own')`)

		return err
	})
	t.Logf("a consumer writes %s after the client of the source has ended", time.Since(begun).Round(time.Second))
	for _, query := range []string{
		`SELECT COUNT(*), MIN(n), MAX(note) FROM kept WHERE n < 2000`,
		`CHECKSUM TABLE account_rows`,
	} {
		if here, there := own.must(t, query), app.must(t, query); here != there {
			t.Errorf("%s: got %q, want %q", query, here, there)
		}
	}
	got, want := own.must(t, `SELECT COUNT(*) FROM account_rows`), strconv.FormatInt(written.Acknowledged+written.Surplus, 10)
	if strings.TrimSpace(got) != want {
		t.Errorf("%s rows are there, want %s", got, want)
	}
	within(t, creation, "it is Ready", databaseCondition(d, "Ready", corev1.ConditionTrue, "Available"))
}
