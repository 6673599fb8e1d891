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

// slack is added to the allowed duration of a gap, because two cores run three nodes and other work. The measured
// duration is logged with it.
const slack = 10.0

// cluster runs a command of the embedded cluster: cut, rejoin, block, unblock, unplug, plug, freeze, thaw.
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

// A fault hits the leader.
type fault struct {
	name string

	// aim is the expected pause of writes from other nodes, in seconds.
	aim float64

	// strike the leader. The returned function reverts it, where that is needed.
	strike func(t *testing.T, leader corev1.Pod) (undo func())

	// lasting is how long until it is reverted.
	lasting time.Duration

	// isolates the leader's node: its clients are counted separately. kills its clients, too, and with them the record
	// of their writes.
	isolates, kills bool
}

// shell in the leader's container.
func shell(t *testing.T, p corev1.Pod, script string) {
	t.Helper()
	if out, err := execIn(t.Context(), &p, serverContainer(p), script, "sh"); err != nil && !strings.Contains(out, "137") {
		t.Fatalf("cannot run %q in %s: %v: %s", script, p.Name, err, out)
	}
}

// faultsOf databases. The fixed order hits each member as the leader from time to time.
func faultsOf(d *v1alpha1.Database) []fault {
	e := dialectOf(d)
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
		{name: "server killed", aim: e.killed, strike: func(t *testing.T, p corev1.Pod) func() {
			t.Helper()
			shell(t, p, e.kill)
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
		{name: "leader alone without the API server", aim: 0, lasting: time.Minute, strike: func(t *testing.T, p corev1.Pod) func() {
			t.Helper()
			// The others can reach the API server. With PostgreSQL, they can even take locks: that the leader stays is the failsafe of
			// Patroni, which asks every member.
			cluster(t, "block", p.Status.PodIP)
			return func() { cluster(t, "unblock", p.Status.PodIP) }
		}},
		{name: "leader frozen", aim: 20, lasting: 40 * time.Second, strike: func(t *testing.T, p corev1.Pod) func() {
			t.Helper()
			// Everything but the first process, which the kernel protects from such signals.
			all := `for p in /proc/[0-9]*; do n=${p#/proc/}; [ "$n" = 1 ] || [ "$n" = $$ ] || kill -%s "$n"; done`
			shell(t, p, fmt.Sprintf(all, "STOP"))
			// The first process may have replaced what was frozen by then.
			return func() { shell(t, p, fmt.Sprintf(all, "CONT")) }
		}},
		{name: "leader's node cut off", aim: 20, lasting: 45 * time.Second, isolates: true, strike: func(t *testing.T, p corev1.Pod) func() {
			t.Helper()
			cluster(t, "cut", letter(p))
			return func() { cluster(t, "rejoin", letter(p)) }
		}},
		{name: "leader's node lost", aim: e.lost, lasting: 40 * time.Second, isolates: true, kills: true, strike: func(t *testing.T, p corev1.Pod) func() {
			t.Helper()
			cluster(t, "unplug", letter(p))
			return func() { cluster(t, "plug", letter(p)) }
		}},
	}
}

// stopCapstan and Crossplane completely, until the returned function is called.
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
	// Crossplane first, until it has ended: while it stops, it still starts the others again.
	for _, first := range []bool{true, false} {
		is := func(name string) bool { return strings.HasPrefix(name, "crossplane") == first }
		for _, d := range list.Items {
			if is(d.Name) {
				if err := scale(t.Context(), d, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		eventually(t, map[bool]string{true: "Crossplane has ended", false: "nothing of Capstan and Crossplane runs"}[first], func(ctx context.Context) error {
			pods := &corev1.PodList{}
			if err := kube.List(ctx, pods, client.InNamespace(crossplane)); err != nil {
				return err
			}
			left := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return first && !is(p.Name) })
			if len(left) > 0 {
				return fmt.Errorf("%d pods are left, such as %s", len(left), left[0].Name)
			}

			return nil
		})
	}

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

// handedOver reports whether a member has stepped down and is stopping. Until there is another leader the Service still
// selects it, and it rejects clients.
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

// oneLeader watches the Service: it must never select two members that can both take writes.
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
					t.Errorf("%s: the Service selects %v", time.Now().Format(time.TimeOnly), ready)
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

// failsOver: after every fault of the leader a standby is promoted soon, there are never two leaders, and no
// acknowledged row is lost.
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
		for _, way := range dialectOf(d).ways {
			writers = append(writers, write(t, d, n.Name, way, 0))
		}
	}
	stop := oneLeader(t, d)
	defer stop()
	asked := &probers{d: d}
	if dialectOf(d).probed {
		asked = probe(t, d)
	}

	for round := range rounds() {
		for _, f := range faultsOf(d) {
			writers = befall(t, d, f, round, writers)
			asked.look(t)
		}
	}
	asked.end(t)

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

// streamed reports whether all other members stream from the leader, and whether any of them can acknowledge a commit.
func streamed(d *v1alpha1.Database, leader corev1.Pod) func(context.Context) error {
	e := dialectOf(d)

	return func(ctx context.Context) error {
		out, err := execIn(ctx, &leader, e.container, e.followers, e.admin...)
		if err != nil {
			return fmt.Errorf("cannot list the standbys of the leader: %w: %s", err, out)
		}
		if got := strings.TrimSpace(out); got != strconv.Itoa(int(d.Spec.Replicas)-1) {
			return fmt.Errorf("%s of %d members stream from %s", got, d.Spec.Replicas-1, leader.Name)
		}

		return nil
	}
}

// befall hits the leader with a fault and counts the effects on clients. It returns the clients that continue.
func befall(t *testing.T, d *v1alpha1.Database, f fault, round int, writers []writer) []writer {
	t.Helper()
	within(t, creation, "it runs", running(d))
	before := leader(t, d)
	// The status may not yet include a member that was away for half a minute. Without that member, a commit waits for
	// the previous leader.
	within(t, creation, "all members follow", streamed(d, before))
	time.Sleep(5 * time.Second) // what settles is not part of the next fault

	since := time.Now()
	undo := f.strike(t, before)
	struck := time.Now()
	mended := struck
	// A clean stop, or a kill with an immediate restart, takes some seconds to begin and to end.
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
