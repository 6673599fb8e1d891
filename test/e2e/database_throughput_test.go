// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// cpuOf the container of a member's server, in seconds since its start.
func cpuOf(t *testing.T, p corev1.Pod) float64 {
	t.Helper()
	// For control groups of version 2, or 1.
	out, err := execIn(t.Context(), &p, "postgres", `cd /sys/fs/cgroup
if [ -r cpu.stat ]; then awk '/^usage_usec/ {printf "%.0f", $2 * 1000}' cpu.stat; else cat cpuacct/cpuacct.usage; fi`, "sh")
	if err != nil {
		t.Fatalf("cannot read the CPU time of %s: %v: %s", p.Name, err, out)
	}
	ns, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err != nil {
		t.Fatalf("the CPU time of %s is %q", p.Name, out)
	}

	return ns / 1e9
}

// copied is the duration of a plain copy of a member's data to its own volume, until it is on the disk.
func copied(t *testing.T, p corev1.Pod) time.Duration {
	t.Helper()
	out, err := execIn(t.Context(), &p, "postgres", `set -e
now() { awk '{printf "%.0f", $1 * 1000}' /proc/uptime; }
mkdir /data/copy
from=$(now)
tar -C /data -c pgdata | tar -C /data/copy -x
sync
to=$(now)
rm -rf /data/copy
echo $((to - from))`, "sh")
	ms, parse := strconv.Atoi(strings.TrimSpace(out))
	if err != nil || parse != nil {
		t.Fatalf("cannot copy the data of %s: %v: %s", p.Name, err, out)
	}

	return time.Duration(ms) * time.Millisecond
}

// TestDatabaseThroughput measures a backup, a verification and a copy of a Database against a plain copy of its data on
// the same disk, and their effect on the leader and on a client. The numbers depend on the machine. These facts must
// not: the leader stays, a backup survives the loss of the leader, and no write is lost.
func TestDatabaseThroughput(t *testing.T) {
	ns := namespace(t)
	d := database(ns, "large-db", func(d *v1alpha1.Database) {
		d.Spec.Replicas = 2
		d.Spec.Storage = resource.MustParse("6Gi")
		d.Spec.Databases = []v1alpha1.LogicalDatabase{{Name: "orders_db"}}
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}, {Name: "writer"}}
		d.Spec.Backup = &v1alpha1.DatabaseBackup{OnDelete: v1alpha1.BackupsDeleted}
	})
	createDatabase(t, d)
	first := nextBackup(t, d, "")

	app := psql(t, d, "app")
	app.must(t, `create table large (id int primary key, v text); insert into large select i, encode(sha512(i::text::bytea), 'hex') from generate_series(1, 4000000) i`)
	size, err := strconv.ParseFloat(app.must(t, `select pg_database_size('orders_db')`), 64)
	if err != nil {
		t.Fatal(err)
	}
	rate := func(what string, took time.Duration) {
		t.Logf("%s: %.0f MB in %s, %.0f MB/s", what, size/1e6, took.Round(100*time.Millisecond), size/1e6/took.Seconds())
	}

	lead := leader(t, d)
	var other corev1.Pod
	for _, p := range members(t.Context(), t, d) {
		if p.Name != lead.Name {
			other = p
		}
	}
	rate("a plain copy on the same disk", copied(t, other))

	w := write(t, d, lead.Spec.NodeName, byService, 0)
	// effect on the leader, on the other member and on the client.
	effect := func(what string, do func()) {
		from, leads, follows := time.Now(), cpuOf(t, lead), cpuOf(t, other)
		do()
		took := time.Since(from).Seconds()
		t.Logf("while %s, %.0f s: the leader used %.1f %% of a core, the other member %.1f %%, and the longest gap in writes was %.1f s",
			what, took, 100*(cpuOf(t, lead)-leads)/took, 100*(cpuOf(t, other)-follows)/took, longest(w.gapsSince(t.Context(), from)))
	}
	effect("nothing happens", func() { time.Sleep(time.Minute) })

	// The first backup was a full one of almost no data: this one takes what was added.
	effect("a backup is taken", func() {
		patchBackup(t, d, `{"now":"large"}`)
		nextBackup(t, d, first)
	})
	got, err := get(t.Context(), &v1alpha1.Database{}, ns, d.Name)
	if err != nil {
		t.Fatal(err)
	}
	last := got.Status.Backup.Last
	t.Logf("the backup: %+v", last)
	took, err := time.ParseDuration(last.Took)
	if err != nil {
		t.Fatal(err)
	}
	rate("the backup", took)

	effect("the backup is verified", func() {
		patchBackup(t, d, `{"verify":{"now":"large","assertions":[{"database":"orders_db","sql":"select count(*) = 4000000 from large"}]}}`)
		within(t, 2*verifiedWithin, "the verification is reported", func(ctx context.Context) error {
			got, err := get(ctx, &v1alpha1.Database{}, ns, d.Name)
			if err != nil {
				return err
			}
			if v := got.Status.Backup.LastVerified; v == nil || v.Backup != last.ID {
				return fmt.Errorf("it was not verified yet: %s", unhappy(got))
			}

			return nil
		})
	})
	if got, err = get(t.Context(), &v1alpha1.Database{}, ns, d.Name); err != nil {
		t.Fatal(err)
	}
	if took, err = time.ParseDuration(got.Status.Backup.LastVerified.Took); err != nil {
		t.Fatal(err)
	}
	rate("the restore of the verification", took)

	c := database(ns, "large-copy", func(c *v1alpha1.Database) {
		c.Spec.Replicas = 1
		c.Spec.Storage = d.Spec.Storage
		c.Spec.Databases = d.Spec.Databases
		c.Spec.Consumers = []v1alpha1.Consumer{{Name: "auditor"}}
		c.Spec.From = &v1alpha1.DatabaseSource{Database: &v1alpha1.DatabaseSourceDatabase{Name: d.Name}}
	})
	effect("it is copied", func() { rate("the copy, until it is Ready", createDatabase(t, c)) })
	if got := psql(t, c, "auditor").must(t, `select count(*) from large`); got != "4000000" {
		t.Errorf("the copy has %s rows of 4000000", got)
	}

	if p := leader(t, d); p.Name != lead.Name {
		t.Errorf("%s is the leader, and %s was", p.Name, lead.Name)
	}

	// The next backup must also have work to do when the leader is lost.
	app.must(t, `insert into large select i, encode(sha512(i::text::bytea), 'hex') from generate_series(4000001, 5000000) i`)
	patchBackup(t, d, `{"now":"killed"}`)
	eventually(t, "a backup is being taken", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := kube.List(ctx, pods, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/backup-of": d.Name}); err != nil {
			return err
		}
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning {
				return nil
			}
		}

		return errors.New("no pod that takes one runs")
	})
	time.Sleep(5 * time.Second)
	if err := kube.Delete(t.Context(), &lead); err != nil {
		t.Fatal(err)
	}
	nextBackup(t, d, last.ID)
	a := w.end(t)
	t.Logf("a client that wrote all the while: %+v", a)
	if len(a.Lost) > 0 || a.Acknowledged == 0 {
		t.Errorf("%d acknowledged writes of %d are lost", len(a.Lost), a.Acknowledged)
	}
}
