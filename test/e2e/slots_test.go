// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// drainSeconds of most Algorithms here.
const drainSeconds = 5

// variable sets an environment variable of the demo server, which makes a revision.
func variable(name, value string) func(*v1alpha1.Algorithm) {
	return func(a *v1alpha1.Algorithm) {
		a.Spec.Env = append(a.Spec.Env, v1alpha1.EnvVar{Name: name, Value: value})
	}
}

// versioned is the response of the demo server.
func versioned(v string) func(*v1alpha1.Algorithm) { return variable("VERSION", v) }

// starting delays the readiness of the demo server.
func starting(d time.Duration) func(*v1alpha1.Algorithm) { return variable("START_DELAY", d.String()) }

func sized(n int32) func(*v1alpha1.Algorithm) {
	return func(a *v1alpha1.Algorithm) { a.Spec.Replicas = new(n) }
}

func draining(seconds int32) func(*v1alpha1.Algorithm) {
	return func(a *v1alpha1.Algorithm) { a.Spec.Availability = &v1alpha1.Availability{DrainSeconds: new(seconds)} }
}

// routed makes it reachable through the embedded cluster's Gateway.
func routed(host string) func(*v1alpha1.Algorithm) {
	return func(a *v1alpha1.Algorithm) {
		a.Spec.Route = &v1alpha1.Route{Host: host, Gateway: &v1alpha1.GatewayReference{Name: "shared", Namespace: "gateway"}}
	}
}

// edit applies an Algorithm.
func edit(t *testing.T, a *v1alpha1.Algorithm) {
	t.Helper()
	if err := apply(t.Context(), a); err != nil {
		t.Fatalf("cannot apply the Algorithm: %v", err)
	}
}

// live fails until a version of the demo server gets the traffic and the Algorithm reports it.
func live(ns, name, version string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := algorithmCondition(ns, name, v1alpha1.TypeUpdated, corev1.ConditionTrue, v1alpha1.ReasonLive)(ctx); err != nil {
			return err
		}
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
		if err != nil {
			return err
		}
		d, err := get(ctx, &appsv1.Deployment{}, ns, name+"-"+a.Status.Revision.Slot)
		if err != nil {
			return err
		}
		for _, e := range d.Spec.Template.Spec.Containers[0].Env {
			if e.Name == "VERSION" && e.Value == version {
				return nil
			}
		}

		return fmt.Errorf("slot %s does not run %s", a.Status.Revision.Slot, version)
	}
}

// alone fails until only the live slot is left.
func alone(ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
		if err != nil {
			return err
		}
		r := a.Status.Revision
		if r == nil || r.Candidate != "" || r.Draining != "" {
			return fmt.Errorf("the status says %+v", r)
		}
		other := map[string]string{"a": "b", "b": "a"}[r.Slot]

		return idle(ctx, ns, name+"-"+other)
	}
}

// idle fails unless the Deployment of a slot runs no revision: it was never made, or stays without pods for the next one.
func idle(ctx context.Context, ns, name string) error {
	d, err := get(ctx, &appsv1.Deployment{}, ns, name)
	switch {
	case kerrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case d.Annotations["capstan.dev/idle"] == "" || d.Status.Replicas > 0:
		return fmt.Errorf("slot %s still runs a revision: %v, %d replicas", name, d.Annotations, d.Status.Replicas)
	default:
		return nil
	}
}

// startsIn fails until pods of a slot exist.
func startsIn(w *witness, slot string, n int) func(context.Context) error {
	return func(context.Context) error {
		if got := len(w.podsOf(slot)); got != n {
			return fmt.Errorf("slot %s has %d pods", slot, got)
		}

		return nil
	}
}

// TestRevisionChangeLosesNothing changes the revision three times under requests of four kinds of clients.
func TestRevisionChangeLosesNothing(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := "reco." + ns + ".example.org"
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), sized(2), draining(drainSeconds), routed(host))
	}
	create(t, reco("v1"))
	eventually(t, "the Gateway serves it", answers(host, "/predict", 200))
	w := witnessOf(t, ns, "reco")
	c := callers(t, ns, "reco", host, outsideKept, outsideNew, insideKept, insideNew)
	since := audit(t)

	versions := []string{"v1", "v2", "v3", "v4"}
	edits, switches := map[string]time.Time{}, map[string]time.Time{}
	for _, v := range versions[1:] {
		edits[v] = time.Now()
		edit(t, reco(v))
		within(t, 2*timeout, "callers reach "+v, live(ns, "reco", v))
		switches[v], _ = w.switched()
		within(t, 2*timeout, "the one before is gone", alone(ns, "reco"))
		t.Logf("%s: %s", v, w.wakings.cost())
	}
	requests := of(since(), ns)
	reports := c.end(t)
	w.end(t, 2*len(versions), len(versions)-1)

	for kind, r := range reports {
		if diff := len(r.Versions); diff != len(versions) {
			t.Errorf("%d versions answered %s, want %d: %v", diff, kind, len(versions), r.Versions)

			continue
		}
		for i, v := range versions[1:] {
			old := r.Versions[versions[i]]
			late := old.Last.Sub(switches[v])
			// New connections follow the Service or the Gateway with a delay. Persistent ones stay until the pod closes
			// them.
			limit := 10 * time.Second
			if kind == insideKept {
				limit = (drainSeconds + 15) * time.Second
			}
			if late > limit {
				t.Errorf("%s answered %s until %s after the switch to %s", versions[i], kind, late, v)
			}
			if r.Versions[v].First.Before(switches[v].Add(-time.Second)) {
				t.Errorf("%s answered %s before %s, when callers were sent to it", v, kind, switches[v])
			}
			t.Logf("%s: switched %s after the edit; callers %s: all traffic %s after the edit", v,
				switches[v].Sub(edits[v]).Round(10*time.Millisecond), kind, old.Last.Sub(edits[v]).Round(10*time.Millisecond))
		}
	}
	t.Logf("API requests of Crossplane, function and provider for each edit: %s", tally(requests, float64(len(edits))))
}

// TestEditWhileStarting edits again, reverts, and deletes before a revision is ready.
func TestEditWhileStarting(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	reco := func(name string, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
		return algorithm(ns, name, append(modify, draining(drainSeconds))...)
	}

	t.Run("EditAgain", func(t *testing.T) {
		t.Parallel()
		create(t, reco("again", versioned("v1")))
		w := witnessOf(t, ns, "again")
		c := callers(t, ns, "again", "", insideNew)
		edit(t, reco("again", versioned("v2"), starting(time.Hour)))
		eventually(t, "v2 starts", startsIn(w, "b", 1))
		edit(t, reco("again", versioned("v3")))
		within(t, 2*timeout, "traffic goes to v3", live(ns, "again", "v3"))
		within(t, 2*timeout, "v1 is gone", alone(ns, "again"))
		r := c.end(t)[insideNew]
		if _, ok := r.Versions["v2"]; ok || r.Versions["v3"] == nil {
			t.Errorf("v3 and never v2 should answer, got %v", r.Versions)
		}
		w.end(t, 3, 1)
	})

	t.Run("GoBack", func(t *testing.T) {
		t.Parallel()
		create(t, reco("back", versioned("v1")))
		w := witnessOf(t, ns, "back")
		c := callers(t, ns, "back", "", insideNew)
		edit(t, reco("back", versioned("v2"), starting(time.Hour)))
		eventually(t, "v2 starts", startsIn(w, "b", 1))
		edit(t, reco("back", versioned("v1")))
		eventually(t, "v1 is what the spec describes", live(ns, "back", "v1"))
		within(t, 2*timeout, "v2 is gone", alone(ns, "back"))
		if r := c.end(t)[insideNew]; len(r.Versions) != 1 {
			t.Errorf("only v1 should answer, got %v", r.Versions)
		}
		w.end(t, 2, 0)
	})

	t.Run("GoBackWhileTheOldOneDrains", func(t *testing.T) {
		t.Parallel()
		flip := func(v string) *v1alpha1.Algorithm { return algorithm(ns, "flip", versioned(v), draining(600)) }
		create(t, flip("v1"))
		w := witnessOf(t, ns, "flip")
		c := callers(t, ns, "flip", "", insideNew)
		edit(t, flip("v2"))
		within(t, 2*timeout, "traffic goes to v2", live(ns, "flip", "v2"))
		before := w.podsOf("a")
		began := time.Now()
		edit(t, flip("v1"))
		eventually(t, "traffic goes to v1 again", live(ns, "flip", "v1"))
		at, n := w.switched()
		t.Logf("back %s after the edit", at.Sub(began).Round(10*time.Millisecond))
		if n != 2 || !maps.Equal(before, w.podsOf("a")) {
			t.Errorf("callers should be back at the pods from before: %d switches, pods before %v, after %v", n, before, w.podsOf("a"))
		}
		c.end(t)
		w.end(t, 2, 2)
	})

	t.Run("Delete", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		create(t, algorithm(ns, "reco", versioned("v1")))
		w := witnessOf(t, ns, "reco")
		edit(t, algorithm(ns, "reco", versioned("v2"), starting(time.Hour)))
		eventually(t, "v2 starts", startsIn(w, "b", 1))
		for _, stop := range w.stop {
			stop()
		}
		if err := kube.Delete(t.Context(), algorithm(ns, "reco")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "nothing is left", nothingIn(ns))
	})

	t.Run("BadEdit", func(t *testing.T) {
		t.Parallel()
		create(t, reco("bad", versioned("v1")))
		w := witnessOf(t, ns, "bad")
		c := callers(t, ns, "bad", "", insideNew)
		slow := func(modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
			return reco("bad", append(modify, versioned("v2"), starting(10*time.Second))...)
		}
		edit(t, slow())
		eventually(t, "v2 starts", startsIn(w, "b", 1))
		// The schema counts characters and a ConfigMap counts bytes: only the function rejects this text as too large.
		big := v1alpha1.FileContent(strings.Repeat("ü", 250_000))
		edit(t, slow(func(a *v1alpha1.Algorithm) {
			a.Spec.Config = v1alpha1.Config{"a": big, "b": big}
		}))
		eventually(t, "the bad edit is reported", algorithmCondition(ns, "bad", v1alpha1.TypeAccepted, corev1.ConditionFalse, v1alpha1.ReasonConfigTooLarge, "spec.config:"))
		eventually(t, "and that it holds the update up", algorithmCondition(ns, "bad", v1alpha1.TypeUpdated, corev1.ConditionFalse, v1alpha1.ReasonNotAccepted, "Accepted"))
		pods := w.podsOf("b")
		generation := generationOf(t, ns, "bad-b")
		eventually(t, "v2 could serve", func(ctx context.Context) error {
			d, err := get(ctx, &appsv1.Deployment{}, ns, "bad-b")
			if err == nil && d.Status.AvailableReplicas != 1 {
				err = errors.New("it is not available")
			}

			return err
		})
		time.Sleep(5 * time.Second)
		if _, n := w.switched(); n != 0 || !maps.Equal(pods, w.podsOf("b")) || generationOf(t, ns, "bad-b") != generation {
			t.Errorf("a spec that cannot be carried out changes nothing: %d switches, pods before %v, after %v", n, pods, w.podsOf("b"))
		}
		eventually(t, "still Ready", ready(ns, "bad", v1alpha1.PhaseReady, 1))
		edit(t, slow())
		eventually(t, "traffic goes to v2", live(ns, "bad", "v2"))
		if !maps.Equal(pods, w.podsOf("b")) {
			t.Errorf("v2 should go on with its pods %v, got %v", pods, w.podsOf("b"))
		}
		within(t, 2*timeout, "v1 is gone", alone(ns, "bad"))
		c.end(t)
		w.end(t, 2, 1)
	})
}

// TestFunctionKilledDuringARevisionChange kills pods of the function between edit and switch, and between switch and
// end.
func TestFunctionKilledDuringARevisionChange(t *testing.T) {
	ns := namespace(t)
	host := "reco." + ns + ".example.org"
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), sized(2), draining(drainSeconds), routed(host))
	}
	create(t, reco("v1"))
	eventually(t, "the Gateway serves it", answers(host, "/predict", 200))
	w := witnessOf(t, ns, "reco")
	c := callers(t, ns, "reco", host, outsideNew, insideKept)
	began := time.Now()
	edit(t, reco("v2"))
	killFunction(t)
	eventually(t, "v2 starts", startsIn(w, "b", 2))
	killFunction(t)
	killFunction(t)
	within(t, 2*timeout, "traffic goes to v2", live(ns, "reco", "v2"))
	killFunction(t)
	within(t, 2*timeout, "v1 is gone", alone(ns, "reco"))
	at, _ := w.switched()
	t.Logf("switched %s after the edit, with three pods of the function killed in between", at.Sub(began).Round(10*time.Millisecond))
	for kind, r := range c.end(t) {
		if r.Versions["v2"] == nil {
			t.Errorf("v2 never answered %s: %v", kind, r.Versions)
		}
	}
	w.end(t, 4, 1)
}
