// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// fenceHeld is how long members hold a fence at most, in this test: three minutes, and three times the duration of the upgrade on the
// copy, which takes less than half a minute.
const fenceHeld = 5 * time.Minute

// TestDatabaseUpgradeWithoutCapstan stops Crossplane and Capstan while an upgrade switches, when no client can write. If the
// later version does not take over, the previous one serves again by itself. If it can, it takes over, and clients reach
// it by the same Service. No acknowledged row is lost, and there is one leader.
func TestDatabaseUpgradeWithoutCapstan(t *testing.T) {
	ns := namespace(t)
	d := database(ns, "orders-db", func(d *v1alpha1.Database) {
		d.Spec.Version, d.Spec.Replicas = "15", 2
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}, {Name: "writer"}}
		d.Spec.Maintenance = &v1alpha1.DatabaseMaintenance{Approval: v1alpha1.ApprovalManual}
	})
	releaseGenerations(t, d)
	createDatabase(t, d)

	app := psql(t, d, "app")
	app.must(t, `create table ledger (id int primary key); insert into ledger select generate_series(1, 50)`)
	w := write(t, d, leader(t, d).Spec.NodeName, byService, 0)
	stop := oneLeader(t, d)
	defer stop()

	merge(t, d, `{"version":"17"}`)
	begun := fencedWithoutCapstan(t, d, ".g2", func(start func()) {
		within(t, fenceHeld, "the members withdraw the fence", fenceIs(d, apimembers.FenceWithdrawn))
		within(t, time.Minute, "clients write", rows(t, app, 50))
		app.must(t, `insert into ledger values (51)`)
		if v := app.must(t, `show server_version_num`); !strings.HasPrefix(v, "15") {
			t.Errorf("version %s serves", v)
		}
		start()
	})
	t.Logf("without Capstan and the later version, writes stood still for %.1f s", longest(w.gapsSince(t.Context(), begun)))
	within(t, upgrading, "the outcome is reported", databaseCondition(d, v1alpha1.TypeUpgraded, corev1.ConditionFalse, v1alpha1.ReasonUpgradeFailed, "did not take over by"))
	within(t, creation, "the previous version runs with all members", running(d))

	merge(t, d, `{"upgrade":{"retry":"2"}}`)
	begun = fencedWithoutCapstan(t, d, ".g3", func(start func()) {
		cluster(t, "unblock", upgrader(t, d, ".g3").Status.PodIP)
		within(t, fenceHeld, "the later version takes over", fenceIs(d, apimembers.FenceCommitted))
		within(t, time.Minute, "clients reach it", rows(t, app, 51))
		app.must(t, `insert into ledger values (52)`)
		if v := app.must(t, `show server_version_num`); !strings.HasPrefix(v, "17") {
			t.Errorf("version %s serves", v)
		}
		start()
	})
	t.Logf("without Capstan, writes stood still for %.1f s, with the time that the later version was cut off", longest(w.gapsSince(t.Context(), begun)))
	within(t, upgrading, "the outcome is reported", databaseCondition(d, v1alpha1.TypeUpgraded, corev1.ConditionTrue, v1alpha1.ReasonUpgraded, "generation 3 of version 17"))
	within(t, creation, "it runs with all members", running(d))
	eventually(t, "all rows are there", rows(t, app, 52))

	a := w.end(t)
	t.Logf("%d rows acknowledged, %d failed, %d lost", a.Acknowledged, a.Failed, len(a.Lost))
	if len(a.Lost) > 0 || a.Acknowledged == 0 {
		t.Errorf("%d of %d acknowledged rows are lost: %v", len(a.Lost), a.Acknowledged, a.Lost)
	}
}

// fencedWithoutCapstan lets an upgrade switch while its member cannot reach the API server, so that it does not take over, and stops
// Crossplane and Capstan when the previous leader has stopped. Its function starts them again. It returns when the switch began.
func fencedWithoutCapstan(t *testing.T, d *v1alpha1.Database, generation string, then func(start func())) time.Time {
	t.Helper()
	within(t, upgrading, "the copy is ready", databaseCondition(d, v1alpha1.TypeUpgraded, corev1.ConditionFalse, v1alpha1.ReasonChangeNotApproved, "spec.maintenance.approve"))
	eventually(t, "the members decide the fence", fenceIs(d, apimembers.FenceOffered))
	ip := upgrader(t, d, generation).Status.PodIP
	cluster(t, "block", ip)
	blocked := true
	unblock := func() {
		if blocked {
			blocked = false
			_ = clusterCommand("unblock", ip)
		}
	}
	defer unblock()
	begun := approve(t, d)
	within(t, timeout, "the previous leader has stopped", func(ctx context.Context) error {
		list := &corev1.PodList{}
		if err := kube.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name}); err != nil {
			return err
		}
		for _, p := range list.Items {
			if p.Annotations[apimembers.AnnotationFenced] != "" {
				return nil
			}
		}

		return errors.New("no member has stopped")
	})
	start := stopCapstan(t)
	started := false
	again := func() {
		if !started {
			started = true
			unblock()
			start()
		}
	}
	defer again()
	if err := fenceIs(d, apimembers.FenceHeld)(t.Context()); err != nil {
		t.Errorf("when Capstan has ended: %v", err)
	}
	then(again)

	return begun
}

// upgrader is the pod that upgrades the data.
func upgrader(t *testing.T, d *v1alpha1.Database, generation string) corev1.Pod {
	t.Helper()
	name := d.Name + strings.Replace(generation, ".", "-", 1) + "-a-0"
	p, err := get(t.Context(), &corev1.Pod{}, d.Namespace, name)
	if err != nil {
		t.Fatal(err)
	}

	return *p
}

// fenceIs in a state, as the members of the first generation recorded it.
func fenceIs(d *v1alpha1.Database, state string) func(context.Context) error {
	return func(ctx context.Context) error {
		list := &corev1.ConfigMapList{}
		if err := kube.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name}); err != nil {
			return err
		}
		for _, o := range list.Items {
			text := o.Annotations[apimembers.AnnotationFence]
			if text == "" {
				continue
			}
			var r apimembers.FenceRecord
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				return err
			}
			if r.State == state {
				return nil
			}

			return fmt.Errorf("the record is %s", text)
		}

		return errors.New("there is no record")
	}
}
