// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// mysqlDatabase of three members.
func mysqlDatabase(ns string, modify ...func(*v1alpha1.Database)) *v1alpha1.Database {
	return database(ns, "orders-db", append([]func(*v1alpha1.Database){func(d *v1alpha1.Database) {
		d.Spec.Engine, d.Spec.Version = v1alpha1.EngineMySQL, "9.7"
		d.Spec.Resources.Memory = new(resource.MustParse("768Mi"))
		d.Spec.Databases = []v1alpha1.LogicalDatabase{{Name: "orders"}, {Name: "audit"}}
		d.Spec.Consumers = []v1alpha1.Consumer{
			{Name: "api"}, {Name: "writer"}, {Name: "reports", Access: v1alpha1.ConsumerReadOnly},
		}
	}}, modify...)...)
}

// TestDatabaseMySQL creates one on one node, and does to it what production does to servers and pods.
func TestDatabaseMySQL(t *testing.T) {
	t.Parallel()
	d := mysqlDatabase(namespace(t), func(d *v1alpha1.Database) {
		d.Spec.Availability.Spread = v1alpha1.SpreadAnywhere
		d.Spec.DeletionProtection = nil
	})
	t.Logf("Ready after %s", createDatabase(t, d).Round(time.Second))
	for _, part := range []struct {
		name string
		do   func(*testing.T, *v1alpha1.Database)
	}{
		{"Serves", mysqlServes},
		{"BadEditTouchesNothing", badEditTouchesNothing},
		{"IsProtected", isProtected},
		{"FailsOver", mysqlFailsOver},
		{"ComesBack", comesBack},
	} {
		t.Run(part.name, func(t *testing.T) { part.do(t, d) })
	}
}

// TestDatabaseMySQLFaults strikes the leader and its node in every way that TestDatabase strikes PostgreSQL's.
func TestDatabaseMySQLFaults(t *testing.T) {
	d := mysqlDatabase(namespace(t), func(d *v1alpha1.Database) { d.Spec.Availability.Profile = v1alpha1.FailoverFast })
	t.Logf("Ready after %s", createDatabase(t, d).Round(time.Second))
	t.Run("FailsOver", func(t *testing.T) { failsOver(t, d) })
	t.Run("LosesVolume", func(t *testing.T) { losesVolume(t, d) })
	t.Run("Quiet", func(t *testing.T) { quiet(t, d) })
}

// losesVolume: all members end at once, and the volume of one is empty when they come back, in any order. Nobody begins without a person,
// who decides as the message says, and nothing is lost.
func losesVolume(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	within(t, creation, "it runs", running(d))
	lead := leader(t, d)
	within(t, creation, "all members follow", streamed(d, lead))
	app := connect(t, d, "api")
	app.must(t, dialectOf(d).thousand)
	ms := slices.Collect(maps.Values(members(t.Context(), t, d)))
	rand.Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
	emptied := ms[slices.IndexFunc(ms, func(p corev1.Pod) bool { return p.Name != lead.Name })]
	// The servers end together, and the program of the emptied member makes data on what looks like a new volume.
	for _, p := range ms {
		script := dialectOf(d).kill
		if p.Name == emptied.Name {
			script += "; rm -rf /data/mysql /data/capstan.json"
		}
		shell(t, p, script)
	}
	for _, p := range ms {
		if err := kube.Delete(t.Context(), &p, client.GracePeriodSeconds(1)); err != nil {
			t.Fatal(err)
		}
	}
	member := func(p corev1.Pod) string { return p.Labels[observev1alpha1.LabelMember] }
	within(t, creation, "a person has to decide", databaseCondition(d, v1alpha1.TypeAvailable, corev1.ConditionFalse, "RecoveryNeedsDecision",
		"the data of "+member(emptied)+" is gone"))
	got, err := get(t.Context(), &v1alpha1.Database{}, d.Namespace, d.Name)
	if err != nil {
		t.Fatal(err)
	}
	message := got.Status.GetCondition(v1alpha1.TypeAvailable).Message
	_, epoch, _ := strings.Cut(message, "<member>@")
	from := member(lead)
	// One that received more than the leader committed could not join a group without that.
	if _, rest, found := strings.Cut(message, "So has "); found {
		from, _, _ = strings.Cut(rest, ",")
	}
	decide(t, d, from+"@"+epoch)
	within(t, creation, "it runs again", running(d))
	if n := app.must(t, `SELECT COUNT(*) FROM kept`); n != "1000" {
		t.Errorf("%s of 1000 rows are there", n)
	}
	app.end(t)
}

// decide with which member a group begins.
func decide(t *testing.T, d *v1alpha1.Database, from string) {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := kube.List(t.Context(), list, client.InNamespace(d.Namespace), client.HasLabels{observev1alpha1.LabelScope}); err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		if strings.HasSuffix(c.Name, "-config") {
			before := c.DeepCopy()
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "capstan.dev/begin-from", from)
			if err := kube.Patch(t.Context(), &c, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			t.Logf("decided %s", from)
		}
	}
}

// mysqlServes: consumers have what their access says, and nothing more.
func mysqlServes(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	secret, err := get(t.Context(), &corev1.Secret{}, d.Namespace, d.Name+"-api")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"type", "host", "port", "database", "username", "password", "uri", "jdbc-url", "ca.crt"} {
		if len(secret.Data[key]) == 0 {
			t.Errorf("the Secret of the consumer lacks %s", key)
		}
	}

	api, reports := connect(t, d, "api"), connect(t, d, "reports")
	api.must(t, `CREATE TABLE items (id INT PRIMARY KEY, name TEXT); INSERT INTO items VALUES (1, 'one')`)
	eventually(t, "a consumer that may only read finds the row that the other wrote", func(context.Context) error {
		out, err := reports.run(t, `SELECT name FROM items`)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if strings.TrimSpace(out) != "one" {
			return fmt.Errorf("it finds %q", out)
		}

		return nil
	})
	for _, forbidden := range []struct {
		by     session
		script string
	}{
		{reports, `INSERT INTO items VALUES (2, 'two')`},
		{reports, `DROP TABLE items`},
		{api, `USE audit`},
		{api, `SELECT * FROM mysql.user`},
		{api, `CREATE USER other`},
		{api, `SET GLOBAL super_read_only = ON`},
	} {
		if out, err := forbidden.by.run(t, forbidden.script); err == nil {
			t.Errorf("%s could run %q: %s", forbidden.by.pod.Name, forbidden.script, out)
		}
	}
	if out := api.must(t, `SHOW STATUS LIKE 'Ssl_version'`); !strings.Contains(out, "TLSv1.") {
		t.Errorf("the connection is %q, want TLS", out)
	}
	api.end(t)
	reports.end(t)
}

// mysqlFailsOver: after each fault of a pod or server another member takes writes, there are never two leaders, and no acknowledged row
// is lost. The last fault ends all members at once.
func mysqlFailsOver(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := kube.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	writers := []writer{write(t, d, nodes.Items[0].Name, byService, 0)}
	stop := oneLeader(t, d)
	defer stop()
	everywhere := fault{name: "all servers killed", aim: 45, strike: func(t *testing.T, _ corev1.Pod) func() {
		t.Helper()
		for _, p := range members(t.Context(), t, d) {
			shell(t, p, dialectOf(d).kill)
		}
		return nil
	}}
	for _, f := range append(faultsOf(d)[:3:3], everywhere) {
		writers = befall(t, d, f, 0, writers)
	}
	a := writers[0].end(t)
	t.Logf("%d rows acknowledged, %d failed, %d lost, longest gap %.1f s", a.Acknowledged, a.Failed, len(a.Lost), a.Longest)
	if len(a.Lost) > 0 || a.Acknowledged < 100 {
		t.Errorf("rows that were acknowledged are lost, or few were: %+v", a)
	}
	list := &corev1.PodList{}
	if err := kube.List(t.Context(), list, client.InNamespace(d.Namespace), client.MatchingLabels{"app.kubernetes.io/name": "mysql"}); err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		for _, c := range p.Status.ContainerStatuses {
			t.Logf("%s: container %s restarted %d times", p.Name, c.Name, c.RestartCount)
		}
	}
}
