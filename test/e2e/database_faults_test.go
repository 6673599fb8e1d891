// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// slack is added to what a gap may take: two cores run three nodes, and whatever else the machine does. What it took is
// told beside it.
const slack = 10.0

// cluster runs a command of the embedded cluster: cut, mend, unplug, plug, freeze, thaw.
func cluster(t *testing.T, args ...string) {
	t.Helper()
	if err := clusterCommand(args...); err != nil {
		t.Fatal(err)
	}
}

func clusterCommand(args ...string) error {
	out, err := exec.Command(os.Getenv("CAPSTAN_CLUSTER_COMMAND"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot %s: %w: %s", strings.Join(args, " "), err, out)
	}

	return nil
}

// A fault befalls the member that leads.
type fault struct {
	name string

	// aim is how long writes from elsewhere may pause, in seconds.
	aim float64

	// strike the leader. What it returns undoes it, where that is needed.
	strike func(t *testing.T, leader corev1.Pod) (undo func())

	// lasting is how long until it is undone.
	lasting time.Duration

	// isolates the leader's node: its clients count apart. kills them, too: what they were told is not known any more.
	isolates, kills bool
}

// shell in the leader's container.
func shell(t *testing.T, p corev1.Pod, script string) {
	t.Helper()
	if out, err := execIn(t.Context(), &p, "postgres", script, "sh"); err != nil && !strings.Contains(out, "137") {
		t.Fatalf("cannot run %q in %s: %v: %s", script, p.Name, err, out)
	}
}

// faultsOf databases. What comes in the same order each round finds each member leading now and then.
func faultsOf(d *v1alpha1.Database) []fault {
	letter := func(p corev1.Pod) string { return p.Spec.NodeName[strings.LastIndex(p.Spec.NodeName, "-")+1:] }
	outage := 90 * time.Second
	if os.Getenv("CAPSTAN_NIGHTLY") != "" {
		outage = 5 * time.Minute
	}

	return []fault{
		{name: "switchover", aim: 2, strike: func(t *testing.T, p corev1.Pod) func() {
			t.Helper()
			shell(t, p, "capstan-member handover")
			return nil
		}},
		{name: "pod deleted", aim: 3, strike: func(t *testing.T, p corev1.Pod) func() {
			t.Helper()
			if err := kube.Delete(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
			return nil
		}},
		{name: "postmaster killed", aim: 3, strike: func(t *testing.T, p corev1.Pod) func() {
			t.Helper()
			shell(t, p, "kill -KILL $(head -n 1 /data/pgdata/postmaster.pid)")
			return nil
		}},
		{name: "Capstan and Crossplane stopped, then the leader's pod deleted", aim: 3, lasting: 10 * time.Second, strike: func(t *testing.T, p corev1.Pod) func() {
			t.Helper()
			restart := stopCapstan(t)
			if err := kube.Delete(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
			return restart
		}},
		{name: "API server frozen", aim: 0, lasting: outage, strike: func(t *testing.T, _ corev1.Pod) func() {
			t.Helper()
			cluster(t, "freeze", "apiserver")
			return func() { cluster(t, "thaw", "apiserver") }
		}},
		{name: "leader frozen", aim: 20, lasting: 40 * time.Second, strike: func(t *testing.T, p corev1.Pod) func() {
			t.Helper()
			// Everything but the first process, which the kernel keeps from such signals.
			shell(t, p, `for p in /proc/[0-9]*; do n=${p#/proc/}; [ "$n" = 1 ] || [ "$n" = $$ ] || kill -STOP "$n"; done`)
			return nil
		}},
		{name: "leader's node cut off", aim: 20, lasting: 45 * time.Second, isolates: true, strike: func(t *testing.T, p corev1.Pod) func() {
			t.Helper()
			cluster(t, "cut", letter(p))
			return func() { cluster(t, "mend", letter(p)) }
		}},
		{name: "leader's node lost", aim: 20, lasting: 40 * time.Second, isolates: true, kills: true, strike: func(t *testing.T, p corev1.Pod) func() {
			t.Helper()
			cluster(t, "unplug", letter(p))
			return func() { cluster(t, "plug", letter(p)) }
		}},
	}
}

// stopCapstan and Crossplane, all of them, until the returned function is called.
func stopCapstan(t *testing.T) func() {
	t.Helper()
	const crossplane = "crossplane-system"
	list := &appsv1.DeploymentList{}
	if err := kube.List(t.Context(), list, client.InNamespace(crossplane)); err != nil {
		t.Fatal(err)
	}
	scale := func(ctx context.Context, d appsv1.Deployment, n int32) error {
		before := d.DeepCopy()
		d.Spec.Replicas = &n

		return kube.Patch(ctx, &d, client.MergeFrom(before))
	}
	// Crossplane first: it would start the others again.
	for _, first := range []bool{true, false} {
		for _, d := range list.Items {
			if strings.HasPrefix(d.Name, "crossplane") == first {
				if err := scale(t.Context(), d, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	eventually(t, "nothing of Capstan and Crossplane runs", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := kube.List(ctx, pods, client.InNamespace(crossplane)); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d pods are left", len(pods.Items))
		}

		return nil
	})

	return func() {
		for _, d := range list.Items {
			now := &appsv1.Deployment{}
			if err := kube.Get(context.Background(), client.ObjectKeyFromObject(&d), now); err != nil {
				t.Errorf("cannot start %s again: %v", d.Name, err)
				continue
			}
			if err := scale(context.Background(), *now, *d.Spec.Replicas); err != nil {
				t.Errorf("cannot start %s again: %v", d.Name, err)
			}
		}
	}
}

// handedOver tells whether a member says of itself that it gave the lead up and is stopped. It stays behind the Service for the moment
// until the next leader is there, and refuses clients.
func handedOver(ctx context.Context, d *v1alpha1.Database, pod string) bool {
	p, err := get(ctx, &corev1.Pod{}, d.Namespace, pod)
	if err != nil {
		return false
	}
	var s struct {
		Role string `json:"role"`
	}
	return json.Unmarshal([]byte(p.Annotations["status"]), &s) == nil && s.Role != "primary" && s.Role != "promoted"
}

// oneLeader watches the Service: never may it lead to two members of which both may take writes.
func oneLeader(t *testing.T, d *v1alpha1.Database) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			endpoints := &discoveryv1.EndpointSliceList{}
			if err := kube.List(ctx, endpoints, client.InNamespace(d.Namespace),
				client.MatchingLabels{discoveryv1.LabelServiceName: d.Name + "-rw"}); err == nil {
				var ready []string
				for _, s := range endpoints.Items {
					for _, e := range s.Endpoints {
						if e.Conditions.Ready == nil || *e.Conditions.Ready {
							ready = append(ready, e.TargetRef.Name)
						}
					}
				}
				if len(ready) > 1 {
					ready = slices.DeleteFunc(ready, func(pod string) bool { return handedOver(ctx, d, pod) })
				}
				if len(ready) > 1 {
					t.Errorf("%s: the Service leads to %v", time.Now().Format(time.TimeOnly), ready)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})

	return func() { cancel(); done.Wait() }
}

// rounds of faults.
func rounds() int {
	n, err := strconv.Atoi(os.Getenv("CAPSTAN_ROUNDS"))
	if err != nil {
		return 1
	}

	return n
}

// failsOver: whatever befalls the leader, another one leads soon, there is never a second, and no row that was
// acknowledged is lost.
func failsOver(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := kube.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) < 3 {
		t.Fatalf("the cluster has %d nodes: these tests take three", len(nodes.Items))
	}
	var writers []writer
	for _, n := range nodes.Items {
		for _, way := range []string{byService, byHosts} {
			writers = append(writers, write(t, d, n.Name, way, 0))
		}
	}
	stop := oneLeader(t, d)
	defer stop()

	for round := range rounds() {
		for _, f := range faultsOf(d) {
			writers = befall(t, d, f, round, writers)
		}
	}

	for _, w := range writers {
		a := w.end(t)
		t.Logf("%s: %d rows acknowledged, %d failed, %d lost, longest gap %.1f s", w.pod.Name, a.Acknowledged, a.Failed, len(a.Lost), a.Longest)
		if len(a.Lost) > 0 {
			t.Errorf("%s lost rows that were acknowledged: %v", w.pod.Name, a.Lost)
		}
		if a.Acknowledged < 100 && w.life == 0 {
			t.Errorf("%s had only %d rows acknowledged: %v", w.pod.Name, a.Acknowledged, a.Errors)
		}
	}
}

// streamed tells whether all other members stream from the leader, and whether any of them is enough for a commit.
func streamed(d *v1alpha1.Database, leader corev1.Pod) func(context.Context) error {
	const follow = "select count(*) from pg_stat_replication where state = 'streaming' and sync_state <> 'async'"

	return func(ctx context.Context) error {
		out, err := execIn(ctx, &leader, "postgres", "", "psql", "-X", "-t", "-A", "-c", follow)
		if err != nil {
			return fmt.Errorf("cannot ask the leader who follows: %w: %s", err, out)
		}
		if got := strings.TrimSpace(out); got != strconv.Itoa(int(d.Spec.Replicas)-1) {
			return fmt.Errorf("%s of %d members stream from %s", got, d.Spec.Replicas-1, leader.Name)
		}

		return nil
	}
}

// befall the leader with a fault, and take account of what clients felt. It returns the clients that go on.
func befall(t *testing.T, d *v1alpha1.Database, f fault, round int, writers []writer) []writer {
	t.Helper()
	within(t, creation, "it runs", running(d))
	before := leader(t, d)
	// The status may not know of a member yet that was away for half a minute. Without it, a commit waits for the one that led.
	within(t, creation, "all members follow", streamed(d, before))
	time.Sleep(5 * time.Second) // what settles is not part of the next fault

	since := time.Now()
	undo := f.strike(t, before)
	struck := time.Now()
	mended := struck
	// What is gracious, or kills what comes again at once, takes some seconds to begin and to end.
	time.Sleep(max(f.lasting, 15*time.Second))
	if undo != nil {
		mended = time.Now()
		undo()
	}
	within(t, creation, f.name+": all members follow again", running(d))
	time.Sleep(2 * time.Second)

	var on []writer
	for _, w := range writers {
		inside := f.isolates && w.node == before.Spec.NodeName
		switch {
		case inside && f.kills:
			on = append(on, write(t, d, w.node, w.way, w.life+1))
			continue
		case inside:
			eventually(t, w.pod.Name+" writes again", func(ctx context.Context) error {
				for _, g := range w.gapsSince(ctx, mended) {
					t.Logf("%d %s: %s on the node itself: last row %.1f s after the fault, back %.1f s after its end",
						round, f.name, w.way, g.From.Sub(struck).Seconds(), g.To.Sub(mended).Seconds())

					return nil
				}

				return errors.New("it does not")
			})
		default:
			gap := longest(w.gapsSince(t.Context(), since))
			t.Logf("%d %s: %s on %s paused %.1f s", round, f.name, w.way, w.node, gap)
			if gap > f.aim+slack {
				t.Errorf("%s: %s on %s paused %.1f s, want at most %.0f s", f.name, w.way, w.node, gap, f.aim)
			}
		}
		on = append(on, w)
	}

	return on
}
