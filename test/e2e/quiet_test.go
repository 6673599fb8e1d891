// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// idleTime is how long there must be no write: a minute in `make test`, ten in `make nightly`.
func idleTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("CAPSTAN_IDLE_TIME")
	if text == "" {
		return time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("CAPSTAN_IDLE_TIME: %v", err)
	}

	return d
}

// TestIdleIsQuiet expects that Ready Algorithms and Credentials cause no write to the API server.
func TestIdleIsQuiet(t *testing.T) {
	ns := namespace(t)
	create(t, algorithm(ns, "plain", func(a *v1alpha1.Algorithm) { a.Spec.Replicas = ptr.To[int32](2) }))
	if err := apply(t.Context(), credential(ns, "orders")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Credential is Ready", available(ns, "orders"))
	within(t, 3*timeout, "the tests before have been tidied up and all is quiet", func(ctx context.Context) error {
		algorithms := &v1alpha1.AlgorithmList{}
		if err := kube.List(ctx, algorithms); err != nil {
			return err
		}
		for _, a := range algorithms.Items {
			if a.Namespace != ns && strings.HasPrefix(a.Namespace, "e2e-") {
				return fmt.Errorf("Algorithm %s/%s is still there", a.Namespace, a.Name)
			}
		}
		// One more pass follows half a minute after the last change.
		since := audit(t)
		time.Sleep(40 * time.Second)
		if w := writes(since()); len(w) > 0 {
			return fmt.Errorf("%d writes in 40 s, for instance: %s", len(w), w[0])
		}

		return nil
	})

	before := resourceVersions(t, ns)
	since := audit(t)
	time.Sleep(idleTime(t))
	events := since()
	t.Logf("API requests of Crossplane, function and provider each idle minute %s", tally(byCapstan(events), idleTime(t).Minutes()))
	if w := writes(events); len(w) > 0 {
		t.Errorf("%d writes while idle for %s, the first of them:", len(w), idleTime(t))
		for _, e := range w[:min(len(w), 20)] {
			t.Log(e)
		}
	}
	if after := resourceVersions(t, ns); before != after {
		t.Errorf("resource versions changed while idle: before %s, after %s", before, after)
	}
}

func resourceVersions(t *testing.T, ns string) string {
	t.Helper()
	a, err := get(t.Context(), &v1alpha1.Algorithm{}, ns, "plain")
	if err != nil {
		t.Fatal(err)
	}
	c, err := get(t.Context(), credential(ns, "orders"), ns, "orders")
	if err != nil {
		t.Fatal(err)
	}

	return a.ResourceVersion + "," + c.ResourceVersion
}

// watchResponsive watches the Algorithms of a namespace. The returned function ends the watch and returns the message
// of the first condition Responsive that was False, or an empty text.
func watchResponsive(t *testing.T, ns string) func() string {
	t.Helper()

	return responsiveOf(t, ns, &v1alpha1.AlgorithmList{}, func(a *v1alpha1.Algorithm) xpv2.Condition { return a.Status.GetCondition("Responsive") })
}

// responsiveOf watches composite resources of one kind for that.
func responsiveOf[T client.Object](t *testing.T, ns string, list client.ObjectList, responsive func(T) xpv2.Condition) func() string {
	t.Helper()
	seen, broke := 0, ""
	stop := watching(t, list, func(_ watch.EventType, o T) {
		seen++
		if c := responsive(o); c.Status == corev1.ConditionFalse && broke == "" {
			broke = c.Message
		}
	}, client.InNamespace(ns))

	return func() string {
		stop()
		if seen == 0 {
			return "the watch saw no event at all"
		}

		return broke
	}
}

// TestFunctionKilledUnderLoad creates many Algorithms while the function's pods are being killed.
func TestFunctionKilledUnderLoad(t *testing.T) {
	ns := namespace(t)
	const many = 15
	for i := range many {
		// The function can be tested without pods: zero replicas keep the kubelet out of it.
		a := algorithm(ns, fmt.Sprintf("burst-%02d", i), func(a *v1alpha1.Algorithm) { a.Spec.Replicas = ptr.To[int32](0) })
		if err := apply(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if i%5 == 2 {
			killFunction(t)
		}
	}
	start := time.Now()
	within(t, 2*timeout, "every Algorithm is Ready", func(ctx context.Context) error {
		for i := range many {
			if err := ready(ns, fmt.Sprintf("burst-%02d", i), v1alpha1.PhaseStopped, 0)(ctx); err != nil {
				return fmt.Errorf("burst-%02d: %w", i, err)
			}
		}

		return nil
	})
	t.Logf("%d Algorithms Ready %s after the last kill", many, time.Since(start).Round(100*time.Millisecond))
}

// killFunction kills one of the function's pods without a grace period, as soon as one runs.
func killFunction(t *testing.T) {
	t.Helper()
	eventually(t, "a pod of the function is killed", func(ctx context.Context) error {
		for _, p := range runtimePods(t, "pkg.crossplane.io/function") {
			if p.Status.Phase == corev1.PodRunning {
				return kube.Delete(ctx, &p, client.GracePeriodSeconds(0))
			}
		}

		return errors.New("none runs")
	})
}

// TestUpgradeRestartsNothing installs a version of the function that renders pods differently. No pod restarts, a new
// revision is rendered by the new version, and a revert gets the pods of the old version.
func TestUpgradeRestartsNothing(t *testing.T) {
	ns := namespace(t)
	reco := func(threshold string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(threshold), draining(drainSeconds), func(a *v1alpha1.Algorithm) {
			a.Spec.Config = v1alpha1.Config{"reco.yaml": v1alpha1.FileContent("threshold: " + threshold)}
		})
	}
	create(t, reco("0.7"))
	create(t, algorithm(ns, "scaled", func(a *v1alpha1.Algorithm) {
		a.Spec.Scaling = &v1alpha1.Scaling{MinReplicas: 1, MaxReplicas: 3}
	}))
	first := revisionOf(t, ns, "reco")
	// In the middle of a step, without traffic, so that nothing advances.
	tried := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "tried", versioned(v), routed(hostOf(ns, "tried")), rolling(steps(20, 50)))
	}
	stable(t, tried("v1"))
	course := courseOf(t, ns, "tried")
	edit(t, tried("v2"))
	within(t, 2*timeout, "20 % of requests may reach v2", stepping(ns, "tried", 20))
	type state struct {
		pods       map[types.UID]int32
		generation int64
	}
	look := func() map[string]state {
		out := map[string]state{}
		for _, name := range []string{"reco-a", "scaled-a", "tried-a", "tried-b"} {
			out[name] = state{pods: pods(t.Context(), t, ns, name[:strings.LastIndex(name, "-")]), generation: generationOf(t, ns, name)}
		}

		return out
	}
	before, rollingBefore := look(), rolloutOf(t.Context(), ns, "tried")
	old := rendered(t, ns, "reco-a")
	t.Cleanup(func() { upgradeFunction(t, os.Getenv("CAPSTAN_VERSION")) })
	upgradeFunction(t, os.Getenv("CAPSTAN_NEXT_VERSION"))

	// An edit of each Algorithm proves that the new version handles it.
	create(t, algorithm(ns, "after"))
	for _, a := range []*v1alpha1.Algorithm{reco("0.7"), tried("v2"), algorithm(ns, "scaled", func(a *v1alpha1.Algorithm) {
		a.Spec.Scaling = &v1alpha1.Scaling{MinReplicas: 1, MaxReplicas: 4}
	})} {
		a.Spec.RevisionHistoryLimit = new(int32(3))
		edit(t, a)
		eventually(t, "the new version has looked at "+a.Name, looked(a.Namespace, a.Name))
	}
	fresh := rendered(t, ns, "after-a")
	if fresh == old {
		t.Fatalf("the two versions render alike: pods have %d s to take leave", old)
	}
	for name, b := range before {
		a := look()[name]
		if !equal(b.pods, a.pods) || b.generation != a.generation {
			t.Errorf("Deployment %s: pods of the Algorithm, and its generation, before %v, after %v", name, b, a)
		}
	}
	if r := rolloutOf(t.Context(), ns, "tried"); r.Phase != v1alpha1.RolloutStepping || r.Weight != 20 || r.Epoch != rollingBefore.Epoch {
		t.Errorf("the rollout before the upgrade %+v, after %+v", rollingBefore, r)
	}
	if got, want := course.routedTo(), []int64{0, 20}; !slices.Equal(got, want) {
		t.Errorf("the HTTPRoute should send %v %% of callers to the revision that is tried, one after the other, got %v", want, got)
	}
	t.Logf("no pod was restarted, and no Deployment written, by a version that gives pods %d s instead of %d to take leave", fresh, old)

	edit(t, reco("0.8"))
	within(t, 2*timeout, "callers reach the next revision", live(ns, "reco", "0.8"))
	if got := rendered(t, ns, "reco-b"); got != fresh {
		t.Errorf("a new revision should be rendered by the new version, with %d s to take leave, got %d", fresh, got)
	}
	// The previous pods are gone by then: only their pinned template is left.
	within(t, 2*timeout, "the one before is gone", alone(ns, "reco"))
	edit(t, reco("0.7"))
	within(t, 2*timeout, "callers reach the revision before", live(ns, "reco", "0.7"))
	if got := rendered(t, ns, "reco-a"); got != old || revisionOf(t, ns, "reco") != first {
		t.Errorf("going back should lead to the pods of before, with %d s to take leave, got %d", old, got)
	}
}

// rendered is what the two versions of the function render differently: the seconds that a pod has to stop.
func rendered(t *testing.T, ns, deployment string) int64 {
	t.Helper()
	d, err := get(t.Context(), &appsv1.Deployment{}, ns, deployment)
	if err != nil {
		t.Fatal(err)
	}

	return d.Spec.Template.Spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds
}

// looked fails until Crossplane has observed the latest spec.
func looked(ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
		if err != nil {
			return err
		}
		if c := a.Status.GetCondition(xpv2.TypeSynced); c.Status != corev1.ConditionTrue || c.ObservedGeneration != a.Generation {
			return fmt.Errorf("condition Synced is %s for generation %d of %d", c.Status, c.ObservedGeneration, a.Generation)
		}

		return nil
	}
}

// upgradeFunction installs a version of the function and waits until its new revision is healthy.
func upgradeFunction(t *testing.T, version string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	f := &unstructured.Unstructured{}
	f.SetAPIVersion("pkg.crossplane.io/v1")
	f.SetKind("Function")
	key := client.ObjectKey{Name: functionName}
	if err := kube.Get(ctx, key, f); err != nil {
		t.Fatalf("cannot get the function: %v", err)
	}
	old, _, _ := unstructured.NestedString(f.Object, "spec", "package")
	repository := old[:strings.LastIndex(old, ":")]
	patch := fmt.Sprintf(`{"spec":{"package":%q}}`, repository+":"+version)
	if err := kube.Patch(ctx, f, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatalf("cannot upgrade the function: %v", err)
	}
	for {
		err := kube.Get(ctx, key, f)
		if err == nil {
			err = packageHealthy(f)
		}
		resolved, _, _ := unstructured.NestedString(f.Object, "status", "currentIdentifier")
		if err == nil && !strings.HasSuffix(resolved, ":"+version) {
			err = fmt.Errorf("the current package is %s", resolved)
		}
		// Pods of the other version still answer calls while they end.
		if err == nil {
			revision, _, _ := unstructured.NestedString(f.Object, "status", "currentRevision")
			err = onlyPodsOf(ctx, revision)
		}
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("function version %s is not healthy: %v", version, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// onlyPodsOf a revision of the function run.
func onlyPodsOf(ctx context.Context, revision string) error {
	list := &corev1.PodList{}
	if err := kube.List(ctx, list, client.InNamespace(system), client.HasLabels{"pkg.crossplane.io/function"}); err != nil {
		return err
	}
	for _, p := range list.Items {
		if got := p.Labels["pkg.crossplane.io/revision"]; got != revision {
			return fmt.Errorf("pod %s of revision %s still runs", p.Name, got)
		}
	}

	return nil
}

// packageHealthy fails until a package is Installed and Healthy.
func packageHealthy(u *unstructured.Unstructured) error {
	var s struct {
		Status xpv2.ConditionedStatus `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
		return err
	}
	for _, ct := range []xpv2.ConditionType{"Installed", "Healthy"} {
		if c := s.Status.GetCondition(ct); c.Status != corev1.ConditionTrue {
			return errors.New(string(ct) + " is " + string(c.Status) + ": " + c.Message)
		}
	}

	return nil
}
