// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	k8sresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/quiet"
)

var (
	key       = client.ObjectKey{Namespace: "shop", Name: "reco-a"}
	composite = metav1.OwnerReference{APIVersion: "capstan.dev/v1alpha1", Kind: "Algorithm", Name: "reco", UID: "xr", Controller: new(true)}
)

// scaled is the Autoscaler of slot a of an Algorithm, as Crossplane composes it.
func scaled(most int32) *v1alpha1.Autoscaler {
	a := &v1alpha1.Autoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, UID: "quiet", Generation: 1, OwnerReferences: []metav1.OwnerReference{composite},
			Labels: map[string]string{v1alpha1.LabelAlgorithm: "reco", v1alpha1.LabelSlot: "a", compositeLabel: "reco"},
		},
		Spec: v1alpha1.AutoscalerSpec{ManagementPolicies: xpv2.ManagementPolicies{xpv2.ManagementActionObserve, xpv2.ManagementActionUpdate}},
	}
	a.Spec.ForProvider.Autoscaler.Raw, _ = json.Marshal(spec(most)) //nolint:errchkjson // Quantities of tests always marshal.
	return a
}

func spec(most int32) autoscalingv2.HorizontalPodAutoscalerSpec {
	return autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "reco-a"},
		MinReplicas:    new(int32(2)), MaxReplicas: most,
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(70))},
		}}},
	}
}

// composed is what an earlier version of the function had Crossplane make.
func composed(owners ...metav1.OwnerReference) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, UID: "hpa", OwnerReferences: owners,
			Labels:      map[string]string{v1alpha1.LabelAlgorithm: "reco", v1alpha1.LabelSlot: "a", compositeLabel: "reco", "team": "shop"},
			Annotations: map[string]string{resourceNameAnnotation: "hpa-a"},
		},
		Spec: spec(9),
	}
}

// A stand is the managed reconciler of Autoscalers, whose writes are counted.
type stand struct {
	t       *testing.T
	kube    client.Client
	scaler  *scaler
	r       *managed.Reconciler
	writes  []string
	deleted int
}

func newStand(t *testing.T, objects ...client.Object) *stand {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{autoscalingv2.AddToScheme, corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &stand{t: t}
	s.kube = quiet.Wrap(fake.NewClientBuilder().
		WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Autoscaler{}, &autoscalingv2.HorizontalPodAutoscaler{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				s.writes = append(s.writes, "create")
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				s.writes = append(s.writes, "update")
				return c.Update(ctx, o, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				s.deleted++
				return c.Delete(ctx, o, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				s.writes = append(s.writes, "status")
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build())
	s.scaler = &scaler{kube: s.kube, seen: s.kube, direct: s.kube}
	s.r = managed.NewReconciler(&xpfake.Manager{Client: s.kube, Scheme: scheme}, resource.ManagedKind(v1alpha1.AutoscalerGroupVersionKind),
		append(options(s.scaler), managed.WithManagementPolicies())...)
	return s
}

// reconcile twice, as the event of what was written does, and return the writes.
func (s *stand) reconcile() string {
	s.t.Helper()
	s.writes = nil
	for range 2 {
		if _, err := s.r.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			s.t.Fatal(err)
		}
	}
	return strings.Join(s.writes, " ")
}

func (s *stand) autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	s.t.Helper()
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := s.kube.Get(s.t.Context(), key, h); err != nil {
		s.t.Fatal(err)
	}
	return h
}

func (s *stand) get() *v1alpha1.Autoscaler {
	s.t.Helper()
	a := &v1alpha1.Autoscaler{}
	if err := s.kube.Get(s.t.Context(), key, a); err != nil {
		s.t.Fatal(err)
	}
	return a
}

// reports what the autoscaler's controller writes.
func (s *stand) reports(h *autoscalingv2.HorizontalPodAutoscaler, status corev1.ConditionStatus, reason, message string) {
	s.t.Helper()
	h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
		{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue, Reason: "ReadyForNewScale"},
		{Type: autoscalingv2.ScalingActive, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(time.Unix(1, 0))},
	}
	if err := s.kube.Status().Update(s.t.Context(), h); err != nil {
		s.t.Fatal(err)
	}
}

// TestLife follows an autoscaler from its creation to a change of its spec.
func TestLife(t *testing.T) {
	s := newStand(t, scaled(10))
	if got := s.reconcile(); got != "create status" {
		t.Errorf("It should be created and reported in one write each, got %q", got)
	}
	h := s.autoscaler()
	want := metav1.OwnerReference{
		APIVersion: "observe.capstan.dev/v1alpha1", Kind: "Autoscaler", Name: "reco-a", UID: "quiet", Controller: new(true), BlockOwnerDeletion: new(true),
	}
	if diff := cmp.Diff([]metav1.OwnerReference{want}, h.OwnerReferences); diff != "" {
		t.Errorf("Kubernetes should delete it with its owner: -want, +got:\n%s", diff)
	}
	if h.Spec.MaxReplicas != 10 || h.Labels[v1alpha1.LabelAlgorithm] != "reco" || h.Labels[compositeLabel] != "" {
		t.Errorf("It should be as asked, and not composed, got %+v", h)
	}
	if c := s.get().GetCondition(xpv2.TypeReady); c.Status != corev1.ConditionFalse {
		t.Errorf("It is not ready before it has looked, got %+v", c)
	}

	s.reports(h, corev1.ConditionTrue, "ValidMetricFound", "")
	if got := s.reconcile(); got != "status" || s.get().GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue {
		t.Errorf("It should become ready in one write, got %q", got)
	}
	a := s.get()
	a.Spec.ForProvider.Autoscaler.Raw, _ = json.Marshal(spec(12)) //nolint:errchkjson // Quantities of tests always marshal.
	if err := s.kube.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if got := s.reconcile(); !strings.HasPrefix(got, "update") || s.autoscaler().Spec.MaxReplicas != 12 {
		t.Errorf("A change should reach it, got %q", got)
	}

	// A person's edit does not stay.
	h = s.autoscaler()
	h.Spec.MaxReplicas = 99
	if err := s.kube.Update(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if got := s.reconcile(); !strings.HasPrefix(got, "update") || s.autoscaler().Spec.MaxReplicas != 12 {
		t.Errorf("It should be as asked again, got %q", got)
	}

	// What it lacks is made again.
	if err := s.kube.Delete(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	s.deleted = 0
	if got := s.reconcile(); !strings.Contains(got, "create") || s.deleted != 0 {
		t.Errorf("It should be created again, got %q", got)
	}
}

// TestTakenOver shows which autoscaler is taken over, and that it is the same one before and after.
func TestTakenOver(t *testing.T) {
	controlled := func(kind, name, uid string) metav1.OwnerReference {
		o := composite
		o.Kind, o.Name, o.UID = kind, name, types.UID(uid)
		if kind == "Autoscaler" {
			o.APIVersion = "observe.capstan.dev/v1alpha1"
		}
		return o
	}
	leaving := composed(composite)
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Now()), []string{"foregroundDeletion"}
	cases := map[string]struct {
		reason string
		before *autoscalingv2.HorizontalPodAutoscaler
		want   string
	}{
		"Composed": {"It was composed for the Algorithm of this Autoscaler.", composed(composite), ""},
		"Earlier":  {"It was that of an earlier Autoscaler of this name, which is gone.", composed(controlled("Autoscaler", "reco-a", "gone")), ""},
		"Another":  {"It is that of another Algorithm.", composed(controlled("Algorithm", "reco-a", "another")), "not of this Algorithm"},
		"Other":    {"It is that of another Autoscaler.", composed(controlled("Autoscaler", "other", "other")), "not of this Algorithm"},
		"Person":   {"A person made it.", composed(), "not of this Algorithm"},
		"Leaving":  {"It is being deleted, and the next one has its turn.", leaving, "it is being deleted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, scaled(10), tc.before)
			_, err := s.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			c, h := s.get().GetCondition(xpv2.TypeSynced), s.autoscaler()
			if h.UID != "hpa" || s.deleted != 0 {
				t.Fatalf("\n%s\nIt should never be deleted, got %s", tc.reason, h.UID)
			}
			if tc.want != "" {
				if c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, tc.want) {
					t.Errorf("\n%s\nwant Synced to be False with %q, got %+v (%v)", tc.reason, tc.want, c, err)
				}
				if diff := cmp.Diff(tc.before.Spec, h.Spec); diff != "" {
					t.Errorf("\n%s\nIt should stay as it is: -want, +got:\n%s", tc.reason, diff)
				}
				return
			}
			owner := metav1.GetControllerOf(h)
			if err != nil || c.Status != corev1.ConditionTrue || len(h.OwnerReferences) != 1 || owner == nil || owner.UID != "quiet" {
				t.Errorf("\n%s\nwant that it belongs to the Autoscaler alone, got %+v, %+v (%v)", tc.reason, h.OwnerReferences, c, err)
			}
			if h.Spec.MaxReplicas != 10 || h.Labels[compositeLabel] != "" || h.Annotations[resourceNameAnnotation] != "" || h.Labels["team"] != "shop" {
				t.Errorf("\n%s\nwant it as asked, without Crossplane's marks and with those of people, got %+v", tc.reason, h)
			}
			if got := s.reconcile(); strings.Contains(got, "update") {
				t.Errorf("\n%s\nand not again, got %q", tc.reason, got)
			}
		})
	}
}

// TestBusyHour counts the writes of an hour in which an autoscaler reports other numbers every quarter of a minute, and names
// another pod each time that it fails.
func TestBusyHour(t *testing.T) {
	s := newStand(t, scaled(10))
	s.reconcile()
	h := s.autoscaler()
	s.reports(h, corev1.ConditionTrue, "ValidMetricFound", "")
	s.reconcile()
	var before client.Object = h.DeepCopy()
	woken, total := 0, 0
	busy := func(n int, report func(i int)) {
		t.Helper()
		for i := range n {
			report(i)
			after := s.autoscaler()
			old, err := slim(before)
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := slim(after)
			if err != nil {
				t.Fatal(err)
			}
			if matters(s.scaler.asksFor).Update(event.UpdateEvent{ObjectOld: old.(client.Object), ObjectNew: fresh.(client.Object)}) {
				woken++
				s.reconcile()
				total += len(s.writes)
			}
			before = after
		}
	}
	busy(240, func(i int) {
		h := s.autoscaler()
		h.Status.CurrentReplicas, h.Status.DesiredReplicas = 2, 2
		h.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
			Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: new(int32(i))},
		}}}
		if err := s.kube.Status().Update(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	})
	if woken != 0 || total != 0 {
		t.Errorf("Numbers should wake nobody, got %d reconciles and %d writes", woken, total)
	}
	busy(10, func(i int) {
		s.reports(s.autoscaler(), corev1.ConditionFalse, "FailedGetResourceMetric", "missing request for cpu in container x of Pod reco-a-"+string(rune('a'+i)))
	})
	if total != 1 {
		t.Errorf("Why it fails should be written once, got %d writes", total)
	}
	a := s.get()
	want := &v1alpha1.AutoscalerFailure{
		Reason: "FailedGetResourceMetric", Message: "missing request for cpu in container x of a pod", Since: metav1.NewTime(time.Unix(1, 0)),
	}
	if diff := cmp.Diff(want, a.Status.AtProvider.Failure); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if c := a.GetCondition(xpv2.TypeReady); c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, "missing request") {
		t.Errorf("It should not be ready, got %+v", c)
	}
	s.reports(s.autoscaler(), corev1.ConditionFalse, scalingDisabled, "scaling is disabled since the replica count of the target is zero")
	s.reconcile()
	if a := s.get(); a.Status.AtProvider.Failure != nil || a.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue {
		t.Errorf("At zero replicas there is nothing to scale, and nothing wrong, got %+v", a.Status)
	}
}

// TestNeeds counts the writes of an hour in which the load swings by a tenth, with an Autoscaler that reports it.
func TestNeeds(t *testing.T) {
	inflight := autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "capstan_inflight"},
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(k8sresource.MustParse("700m"))},
	}}
	latency := autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "capstan_latency_p95_ms"},
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: new(k8sresource.MustParse("50"))},
	}}
	external := func(name string, v autoscalingv2.MetricValueStatus) autoscalingv2.MetricStatus {
		return autoscalingv2.MetricStatus{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricStatus{
			Metric: autoscalingv2.MetricIdentifier{Name: name}, Current: v,
		}}
	}
	cpu := func(use int32) []autoscalingv2.MetricStatus {
		return []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
			Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: &use},
		}}}
	}
	load := func(milli int64) []autoscalingv2.MetricStatus {
		return []autoscalingv2.MetricStatus{
			external("capstan_inflight", autoscalingv2.MetricValueStatus{AverageValue: k8sresource.NewMilliQuantity(milli, k8sresource.DecimalSI)}),
			external("capstan_latency_p95_ms", autoscalingv2.MetricValueStatus{Value: new(k8sresource.MustParse("5000"))}),
		}
	}
	byCPU, byLoad := spec(10).Metrics, []autoscalingv2.MetricSpec{inflight, latency}
	type step struct {
		reason           string
		current, desired int32
		seen             []autoscalingv2.MetricStatus
		want             *float64
		woken            bool
	}
	n := func(v float64) *float64 { return &v }
	cases := map[string]struct {
		report  bool
		metrics []autoscalingv2.MetricSpec
		steps   []step
	}{
		"NotAsked": {false, byLoad, []step{{"Nobody asks.", 3, 3, load(700), nil, false}, {"Whatever the load is.", 3, 9, load(7000), nil, false}}},
		"Load": {true, byLoad, []step{
			{"It has not looked.", 0, 0, nil, nil, false},
			{"What fits exactly is not rounded up, and the latency is no load.", 3, 3, load(700), n(3), true},
			{"Any part of a tenth is one.", 3, 3, load(701), n(3.1), true},
			{"Less than a replica less is no news.", 10, 10, load(154), n(3.1), true},
			{"More is, beyond the bounds, also while it changes.", 10, 10, load(1400), n(20), true},
			{"It swings.", 10, 10, load(1300), n(20), true},
			{"It swings back.", 10, 10, load(1400), n(20), true},
			{"It falls by a tenth.", 10, 10, load(1260), n(20), true},
			{"And by more.", 10, 10, load(1190), n(17), true},
			{"The metric is lost.", 10, 10, []autoscalingv2.MetricStatus{{}, {}}, n(17), true},
			{"Nothing is left to do.", 10, 10, load(0), n(0), true},
			{"There are no replicas.", 0, 0, load(1400), n(0), true},
		}},
		"CPU": {true, byCPU, []step{
			{"Nobody knows how many were ready.", 4, 6, cpu(105), nil, true},
			{"Nothing changes.", 6, 6, cpu(71), n(6.1), true},
			{"It grows again.", 6, 9, cpu(105), n(6.1), true},
			{"To its limit.", 10, 10, cpu(140), n(20), true},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, should := scaled(10), spec(10)
			should.Metrics = tc.metrics
			a.Spec.ForProvider.Autoscaler.Raw, _ = json.Marshal(should)
			if tc.report {
				a.Spec.ForProvider.ReportNeeds = new(true)
			}
			s := newStand(t, a)
			s.reconcile()
			s.reports(s.autoscaler(), corev1.ConditionTrue, "ValidMetricFound", "")
			s.reconcile()
			var reported *float64
			for _, st := range tc.steps {
				h := s.autoscaler()
				before, err := slim(h.DeepCopy())
				if err != nil {
					t.Fatal(err)
				}
				h.Status.CurrentReplicas, h.Status.DesiredReplicas, h.Status.CurrentMetrics = st.current, st.desired, st.seen
				if err := s.kube.Status().Update(t.Context(), h); err != nil {
					t.Fatal(err)
				}
				after, err := slim(s.autoscaler())
				if err != nil {
					t.Fatal(err)
				}
				if woken := matters(s.scaler.asksFor).Update(event.UpdateEvent{ObjectOld: before.(client.Object), ObjectNew: after.(client.Object)}); woken != st.woken {
					t.Errorf("\n%s\nwant that it is looked at: %t", st.reason, st.woken)
				}
				writes := s.reconcile()
				got := s.get().Status.AtProvider.Needs
				if diff := cmp.Diff(st.want, got); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", st.reason, diff)
				}
				if same := cmp.Equal(reported, got); same != (writes == "") {
					t.Errorf("\n%s\nwant a write only for another number, got %q", st.reason, writes)
				}
				reported = got
			}
			if a = s.get(); a.Spec.ForProvider.ReportNeeds != nil {
				a.Spec.ForProvider.ReportNeeds = nil
				if err := s.kube.Update(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				s.reconcile()
				if got := s.get().Status.AtProvider.Needs; got != nil {
					t.Errorf("Afterwards nobody asks, got %g", *got)
				}
			}
		})
	}
}

// TestGone leaves an Autoscaler that is deleted alone: its autoscaler is Kubernetes' to delete, and is not made again.
func TestGone(t *testing.T) {
	a := scaled(10)
	a.DeletionTimestamp, a.Finalizers = new(metav1.Now()), []string{"foregroundDeletion"}
	s := newStand(t, a)
	s.reconcile()
	if err := s.kube.Get(t.Context(), key, &autoscalingv2.HorizontalPodAutoscaler{}); err == nil || strings.Contains(strings.Join(s.writes, " "), "create") {
		t.Errorf("It should not be created again, got %v", s.writes)
	}
}
