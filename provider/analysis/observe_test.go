// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpresource "github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/quiet"
	"github.com/capstan-dev/capstan/provider/internal/secretwatch"
	"github.com/capstan-dev/capstan/provider/internal/signals"
)

func analysisOf(name, algorithm string) *v1alpha1.Analysis {
	return &v1alpha1.Analysis{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: v1alpha1.AnalysisSpec{
			ManagementPolicies: xpv2.ManagementPolicies{xpv2.ManagementActionObserve},
			ForProvider:        v1alpha1.AnalysisParameters{Algorithm: algorithm, Container: container},
		},
	}
}

func newKube(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *quiet.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return quiet.Wrap(fake.NewClientBuilder().
		WithScheme(scheme).
		WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Analysis{}, &corev1.Pod{}).
		WithInterceptorFuncs(funcs).
		Build())
}

// newObserver without Prometheus, whose watches tell nothing.
func newObserver(kube client.Reader, now func() time.Time) *observer {
	return &observer{kube: kube, now: now, memory: newMemory(), secrets: secretwatch.New(kube, nil), board: &signals.Board{}}
}

// TestQuiet runs the real managed reconciler: what it writes, and when.
func TestQuiet(t *testing.T) {
	writes := 0
	wrote := func() { writes++ }
	funcs := interceptor.Funcs{
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			if _, ok := o.(*v1alpha1.Analysis); ok {
				wrote()
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			wrote()
			return c.Update(ctx, o, opts...)
		},
	}
	stranger := pod("other", waiting("InvalidImageName", ""))
	stranger.Labels[v1alpha1.LabelAlgorithm] = "other"
	elsewhere := pod("reco-a-1", waiting("InvalidImageName", ""))
	elsewhere.Namespace = "elsewhere"
	mine := pod("reco-a-1", running(0))
	kube := newKube(t, funcs, analysisOf("watch", "reco"), &mine, &stranger, &elsewhere)
	clock := now
	obs := newObserver(kube, func() time.Time { return clock })
	r := managed.NewReconciler(&xpfake.Manager{Client: kube, Scheme: kube.Scheme()},
		xpresource.ManagedKind(v1alpha1.AnalysisGroupVersionKind), append(options(obs),
			managed.WithManagementPolicies(), managed.WithPollInterval(10*time.Minute))...)
	key := client.ObjectKey{Namespace: "shop", Name: "watch"}
	look := func() reconcile.Result {
		t.Helper()
		writes = 0
		res, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	got := func() *v1alpha1.Analysis {
		t.Helper()
		a := &v1alpha1.Analysis{}
		if err := kube.Get(t.Context(), key, a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if res := look(); writes != 1 || res.RequeueAfter != time.Minute {
		t.Errorf("At first one write, and a look when silence is too long: got %d writes and %s", writes, res.RequeueAfter)
	}
	if a := got(); a.GetCondition(xpv2.TypeReady).Reason != xpv2.ReasonAvailable || len(a.Status.AtProvider.Findings) != 0 || len(a.Finalizers) != 0 {
		t.Errorf("An Analysis should be available, without findings and finalizers, got %+v", a)
	}
	if look(); writes != 0 {
		t.Errorf("Without a change there should be no write, got %d", writes)
	}
	clock = clock.Add(time.Minute)
	if look(); writes != 1 {
		t.Errorf("A new finding should be one write, got %d", writes)
	}
	want := []v1alpha1.Finding{{Reason: "NotListening", Message: silent, Slot: "a"}}
	if diff := cmp.Diff(want, got().Status.AtProvider.Findings); diff != "" {
		t.Errorf("Findings: -want, +got:\n%s", diff)
	}
	clock = clock.Add(time.Hour)
	if res := look(); writes != 0 || res.RequeueAfter < 9*time.Minute {
		t.Errorf("Time alone should change nothing more: got %d writes, and a look after %s", writes, res.RequeueAfter)
	}
	mine.Status.Conditions[1].Status = corev1.ConditionTrue
	if err := kube.Status().Update(t.Context(), &mine); err != nil {
		t.Fatal(err)
	}
	if look(); writes != 1 || len(got().Status.AtProvider.Findings) != 0 {
		t.Errorf("A pod that is ready should take its finding along, got %d writes and %+v", writes, got().Status)
	}
	if err := kube.Delete(t.Context(), got()); err != nil {
		t.Fatal(err)
	}
	if err := kube.Get(t.Context(), key, &v1alpha1.Analysis{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("An Analysis should go without anybody's help, got %v", err)
	}
}

func TestObserveCannotList(t *testing.T) {
	boom := errors.New("boom")
	kube := newKube(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return boom
	}})
	obs := newObserver(kube, time.Now)
	if _, err := obs.Observe(t.Context(), analysisOf("watch", "reco")); !errors.Is(err, boom) {
		t.Errorf("Observe(...): want %v, got %v", boom, err)
	}
}

// A queue takes down what is added, and after which time.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	added map[string]time.Duration
}

func (q *queue) AddAfter(r reconcile.Request, after time.Duration) { q.added[r.String()] = after }

func TestObservers(t *testing.T) {
	kube := newKube(t, interceptor.Funcs{},
		analysisOf("watch", "reco"), analysisOf("watch-too", "reco"), analysisOf("other", "other"))
	h := observers(kube, logging.NewNopLogger())
	p := pod("reco-a-1")
	want := map[string]time.Duration{"shop/watch": settle, "shop/watch-too": settle}
	for verb, tell := range map[string]func(*queue){
		"Create": func(q *queue) { h.Create(t.Context(), event.CreateEvent{Object: &p}, q) },
		"Update": func(q *queue) { h.Update(t.Context(), event.UpdateEvent{ObjectOld: &p, ObjectNew: &p}, q) },
		"Delete": func(q *queue) { h.Delete(t.Context(), event.DeleteEvent{Object: &p}, q) },
	} {
		q := &queue{added: map[string]time.Duration{}}
		tell(q)
		if diff := cmp.Diff(want, q.added); diff != "" {
			t.Errorf("%s of a pod should wake the Analyses of its Algorithm after a while: -want, +got:\n%s", verb, diff)
		}
	}
}

func TestVerdictMayChange(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*corev1.Pod)
		want   bool
	}{
		"Resync": {reason: "An event without a change.", change: func(*corev1.Pod) {}},
		"Other":  {reason: "A new version of what we do not look at.", change: func(p *corev1.Pod) { p.ResourceVersion = "2" }},
		"Status": {reason: "A status that we look at.", change: waiting("ErrImagePull", ""), want: true},
		"Label":  {reason: "Another slot.", change: slot("b"), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			was, is := pod("reco-a-1"), pod("reco-a-1")
			tc.change(&is)
			if got := verdictMayChange().Update(event.UpdateEvent{ObjectOld: &was, ObjectNew: &is}); got != tc.want {
				t.Errorf("\n%s\nUpdate(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestPods(t *testing.T) {
	by, err := Pods()
	if err != nil {
		t.Fatal(err)
	}
	if !by.Label.Matches(labels.Set{v1alpha1.LabelAlgorithm: "any"}) || by.Label.Matches(labels.Set{"app": "any"}) {
		t.Errorf("Pods(): want the pods of all Algorithms and no others, got %q", by.Label)
	}
}
