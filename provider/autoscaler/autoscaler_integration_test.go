// SPDX-License-Identifier: Apache-2.0

//go:build integration

package autoscaler

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/testbench"
	"github.com/capstan-dev/capstan/test/outside"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(outside.Main(m))
}

// TestServer takes over an autoscaler in a real API server, with its defaults and its checks, and then writes nothing.
func TestServer(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kube := testbench.Controllers(t, outside.APIServer(t), ctrl.Options{
		Scheme: scheme, Cache: cache.Options{ReaderFailOnMissingInformer: true},
	}, Setup)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	// Anything that has a UID can control what is composed for it.
	xr := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "reco"}}
	testbench.Create(t, kube, ns)
	xr.Namespace = ns.Name
	testbench.Create(t, kube, xr)
	owner := *metav1.NewControllerRef(xr, corev1.SchemeGroupVersion.WithKind("ConfigMap"))

	// As the function composes them: with behavior, external metrics and quantities.
	should := spec(9)
	should.Metrics = append(should.Metrics, autoscalingv2.MetricSpec{
		Type: autoscalingv2.ExternalMetricSourceType,
		External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "capstan_inflight", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"slot": "a"}}},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("1500m"))},
		},
	})
	should.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: new(int32(300)), SelectPolicy: new(autoscalingv2.MaxChangePolicySelect),
		Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 10, PeriodSeconds: 60}},
	}}
	before := composed(owner)
	before.Namespace, before.UID = ns.Name, ""
	testbench.Create(t, kube, before)
	a := scaled(9)
	a.Namespace, a.UID, a.OwnerReferences = ns.Name, "", []metav1.OwnerReference{owner}
	a.Spec.ForProvider.Autoscaler.Raw, _ = json.Marshal(should) //nolint:errchkjson // Quantities of tests always marshal.
	testbench.Create(t, kube, a)

	h := &autoscalingv2.HorizontalPodAutoscaler{}
	eventually(t, "the autoscaler belongs to the Autoscaler", func() bool {
		err := kube.Get(t.Context(), client.ObjectKeyFromObject(before), h)
		owner := metav1.GetControllerOf(h)
		return err == nil && h.UID == before.UID && len(h.OwnerReferences) == 1 && owner.Kind == "Autoscaler" && len(h.Spec.Metrics) == 2
	})
	eventually(t, "it is Synced", func() bool {
		err := kube.Get(t.Context(), client.ObjectKeyFromObject(a), a)
		return err == nil && a.GetCondition(xpv2.TypeSynced).Status == corev1.ConditionTrue
	})

	// Numbers, again and again, are no reason to write anything.
	for i := range 20 {
		h.Status.CurrentReplicas, h.Status.DesiredReplicas = 2, int32(i)
		h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
			Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound", LastTransitionTime: metav1.NewTime(time.Unix(1, 0)),
		}}
		if err := kube.Status().Update(t.Context(), h); err != nil {
			t.Fatalf("another wrote it: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	eventually(t, "it is Ready", func() bool {
		err := kube.Get(t.Context(), client.ObjectKeyFromObject(a), a)
		return err == nil && a.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
	})
	version := a.ResourceVersion
	h.Status.DesiredReplicas = 99
	if err := kube.Status().Update(t.Context(), h); err != nil {
		t.Fatalf("another wrote it: %v", err)
	}
	time.Sleep(time.Second)
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil || a.ResourceVersion != version {
		t.Errorf("its Autoscaler should not have been written for a number (%v)", err)
	}

	// What the API server refuses is reported.
	should.MaxReplicas = 1
	a.Spec.ForProvider.Autoscaler.Raw, _ = json.Marshal(should) //nolint:errchkjson // Quantities of tests always marshal.
	if err := kube.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the refusal is reported", func() bool {
		err := kube.Get(t.Context(), client.ObjectKeyFromObject(a), a)
		return err == nil && a.GetCondition(xpv2.TypeSynced).Status == corev1.ConditionFalse
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("want that %s", what)
}
