// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestDatabaseLostStandby: the node of a standby is away while the leader writes more than it keeps for standbys. The
// standby comes back by itself, and until it does no status claims that it follows.
func TestDatabaseLostStandby(t *testing.T) {
	ns := namespace(t)
	d := database(ns, "orders-db", func(d *v1alpha1.Database) { d.Spec.Storage = resource.MustParse("1Gi") })
	createDatabase(t, d)
	lead := leader(t, d)
	within(t, creation, "all members follow", streamed(d, lead))
	away := standby(t, d, lead)
	evacuate(t, away.Spec.NodeName)
	letter := away.Spec.NodeName[strings.LastIndex(away.Spec.NodeName, "-")+1:]
	cluster(t, "unplug", letter)
	plugged := false
	t.Cleanup(func() {
		if !plugged {
			_ = clusterCommand("plug", letter)
		}
	})
	outrun(t, lead)
	stop := truthful(t, d, lead, away)
	cluster(t, "plug", letter)
	plugged = true
	within(t, creation, "it is reported", databaseCondition(d, v1alpha1.TypeHighlyAvailable, corev1.ConditionFalse, v1alpha1.ReasonStandbyLost, away.Labels[observev1alpha1.LabelMember]))
	begun := time.Now()
	within(t, creation, "it follows again by itself", streamed(d, lead))
	t.Logf("follows %s after it was reported", time.Since(begun).Round(time.Second))
	within(t, creation, "all is well", running(d))
	stop()
	within(t, timeout, "that is reported", databaseCondition(d, v1alpha1.TypeHighlyAvailable, corev1.ConditionTrue, v1alpha1.ReasonStandbyInSync))
}

// standby of a leader: the pod of another member.
func standby(t *testing.T, d *v1alpha1.Database, lead corev1.Pod) corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	err := kube.List(t.Context(), list, client.InNamespace(d.Namespace), client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name}, client.HasLabels{observev1alpha1.LabelMember})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		if p.Name != lead.Name {
			return p
		}
	}
	t.Fatal("there is no standby")

	return corev1.Pod{}
}

// evacuate a node from Capstan and Crossplane, which report on its members while it is down.
func evacuate(t *testing.T, name string) {
	t.Helper()
	cordon := func(ctx context.Context, on bool) error {
		n, err := get(ctx, &corev1.Node{}, "", name)
		if err != nil {
			return err
		}
		before := n.DeepCopy()
		n.Spec.Unschedulable = on

		return kube.Patch(ctx, n, client.MergeFrom(before))
	}
	if err := cordon(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cordon(context.Background(), false); err != nil {
			t.Errorf("cannot uncordon %s: %v", name, err)
		}
	})
	crossplane := client.InNamespace("crossplane-system")
	list := &corev1.PodList{}
	if err := kube.List(t.Context(), list, crossplane); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.NodeName == name {
			if err := client.IgnoreNotFound(kube.Delete(t.Context(), &list.Items[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
	within(t, creation, "Capstan and Crossplane run elsewhere", func(ctx context.Context) error {
		if err := kube.List(ctx, list, crossplane); err != nil {
			return err
		}
		for _, p := range list.Items {
			ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
			if p.Spec.NodeName == name || !ready {
				return fmt.Errorf("pod %s on %q, ready: %t", p.Name, p.Spec.NodeName, ready)
			}
		}

		return nil
	})
}

// outrun standbys that are away: the leader writes until it has removed what they need next.
func outrun(t *testing.T, lead corev1.Pod) {
	t.Helper()
	const (
		write = "select pg_logical_emit_message(false, 'x', string_agg(md5(g::text), '')) from generate_series(1, 450000) g"
		gone  = "select count(*) from pg_replication_slots where wal_status = 'lost' or not active and restart_lsn is null"
	)
	within(t, creation, "the leader has removed what a standby needs", func(ctx context.Context) error {
		out, err := execIn(ctx, &lead, "postgres", "", "psql", "-X", "-t", "-A", "-c", write, "-c", "select pg_switch_wal()", "-c", "checkpoint", "-c", gone)
		if err != nil {
			return fmt.Errorf("cannot write: %w: %s", err, out)
		}
		lines := strings.Fields(out)
		if len(lines) == 0 || lines[len(lines)-1] == "0" {
			return fmt.Errorf("every slot is kept: %s", strings.Join(lines, " "))
		}

		return nil
	})
}

// claimed is how long a status may lag behind what the leader sees: until the kubelet of a node that comes back has reported its
// containers.
const claimed = 20 * time.Second

// truthful watches the status of a Database: while a member does not follow, as its leader sees it, the status must not count
// it as ready, nor report that all is well.
func truthful(t *testing.T, d *v1alpha1.Database, lead, away corev1.Pod) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	query := "select count(*) from pg_stat_replication where state = 'streaming' and application_name = '" + away.Name + "'"
	var done sync.WaitGroup
	done.Go(func() {
		var since time.Time
		told := ""
		for ; ctx.Err() == nil; time.Sleep(time.Second) {
			out, err := execIn(ctx, &lead, "postgres", "", "psql", "-X", "-t", "-A", "-c", query)
			got, gerr := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
			if err != nil || gerr != nil {
				continue
			}
			c := got.Status.GetCondition(v1alpha1.TypeHighlyAvailable)
			claim := fmt.Sprintf("%d ready, phase %s, HighlyAvailable %s %s", got.Status.ReadyReplicas, got.Status.Phase, c.Status, c.Reason)
			if synced := got.Status.GetCondition(xpv2.TypeSynced); synced.Status != corev1.ConditionTrue {
				claim += fmt.Sprintf(", Synced %s %s: %s", synced.Status, synced.Reason, synced.Message)
			}
			if follows := strings.TrimSpace(out) == "1"; claim != told {
				told = claim
				t.Logf("%s: follows: %t; %s", time.Now().Format(time.TimeOnly), follows, claim)
			}
			// Another standby may be there, while a member is missing: that says so.
			wrong := got.Status.ReadyReplicas == d.Spec.Replicas || got.Status.Phase == v1alpha1.DatabaseRunning ||
				c.Status == corev1.ConditionTrue && c.Reason != v1alpha1.ReasonMembersMissing
			switch {
			case !wrong || strings.TrimSpace(out) == "1":
				since = time.Time{}
			case since.IsZero():
				since = time.Now()
			case time.Since(since) > claimed:
				t.Errorf("%s: %s does not follow, and the status claims for %s: %s", time.Now().Format(time.TimeOnly), away.Name, claimed, claim)
				since = time.Now()
			}
		}
	})

	return func() { cancel(); done.Wait() }
}
