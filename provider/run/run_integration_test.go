// SPDX-License-Identifier: Apache-2.0

//go:build integration

package run

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/podask"
	"github.com/capstan-dev/capstan/provider/internal/testbench"
	programs "github.com/capstan-dev/capstan/test/outside"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(programs.Main(m))
}

// address of the coordinator in TestServer. Its port is fixed, so it has an address of its own.
const address = "127.77.1.1"

// coordinator that listens where a provider asks. It says what state has.
func coordinator(t *testing.T, state *atomic.Pointer[crew.State], asked *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", address+":7701")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != crew.StatePath {
			t.Errorf("it asks for %s", r.URL)
		}
		asked.Add(1)
		_ = json.NewEncoder(w).Encode(state.Load()) //nolint:errchkjson // Times of tests always marshal.
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
}

// TestServer observes a run in a real API server, from its first pod to its end.
func TestServer(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	guard := &outside.Guard{
		Allowed:   []netip.Prefix{netip.MustParsePrefix(address + "/32")},
		APIServer: func(context.Context) ([]netip.Addr, error) { return nil, nil },
	}
	kube := testbench.Controllers(t, programs.APIServer(t), ctrl.Options{
		Scheme: scheme, Cache: cache.Options{ReaderFailOnMissingInformer: true},
	}, Setup(guard))
	var (
		state atomic.Pointer[crew.State]
		asked atomic.Int32
	)
	state.Store(running(func(s *crew.State) {
		s.Phase, s.Missing = crew.PhaseGathering, []crew.Missing{{Index: 1, Since: time.Now()}}
	}))
	coordinator(t, &state, &asked)

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	testbench.Create(t, kube, ns)
	cr := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "fraud"}}
	cr.Spec.ForProvider = v1alpha1.RunParameters{Job: "fraud-r1", Number: 1}
	first, other := made(ns.Name, "0", "0"), made(ns.Name, "1", "1")
	others := other.DeepCopy()
	others.Name, others.Labels[batchv1.JobNameLabel], others.OwnerReferences[0].Name = "other", "other", "other"
	testbench.Create(t, kube, cr, first, other, others)

	first.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient cpu.",
	}}
	write(t, kube, first)
	eventually(t, kube, cr, "the pod that no node takes is reported, and the one that was replaced", func(at v1alpha1.RunObservation) bool {
		return at.Pods != nil && at.Pods.Reason == "Unschedulable" && at.PodRestarts == 1 && at.Phase == ""
	})

	first.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, HostIP: "192.168.7.7", HostIPs: []corev1.HostIP{{IP: "192.168.7.7"}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: crew.Container, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}},
	}
	write(t, kube, first)
	eventually(t, kube, cr, "the coordinator is asked", func(at v1alpha1.RunObservation) bool {
		return at.Phase == "Gathering" && len(at.Missing) == 1 && at.Pods == nil && asked.Load() > 0
	})
	state.Store(running())
	eventually(t, kube, cr, "it is asked again, without an event", func(at v1alpha1.RunObservation) bool {
		return at.Phase == "Running" && at.Progress != nil && at.Progress.Step == 41200
	})
	if c := cr.GetCondition(xpv2.TypeReady); c.Status != corev1.ConditionTrue || len(cr.GetFinalizers()) > 0 {
		t.Errorf("want it to be Ready and without finalizers, got %v, %v", c, cr.GetFinalizers())
	}

	// Numbers that only grow are no reason to write anything.
	version := cr.ResourceVersion
	state.Store(running(func(s *crew.State) { s.Progress.Step, s.GoodputPercent = 41201, 96 }))
	before := asked.Load()
	for end := time.Now().Add(time.Minute); asked.Load() < before+2 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
	}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(cr), cr); err != nil || cr.ResourceVersion != version {
		t.Errorf("a step should make no write: %v, %+v", err, cr.Status.AtProvider.Progress)
	}

	// Its last words are in the status of its container.
	last := running(func(s *crew.State) { s.Phase, s.Progress.Step = crew.PhaseSucceeded, 60000 })
	first.Status.Phase = corev1.PodSucceeded
	first.Status.ContainerStatuses[0].Ready = false
	first.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: asJSON(t, last), FinishedAt: metav1.Now()}}
	write(t, kube, first)
	eventually(t, kube, cr, "the run has succeeded", func(at v1alpha1.RunObservation) bool {
		return at.Phase == "Succeeded" && at.Progress.Step == 60000
	})
	before = asked.Load()
	time.Sleep(podask.Every + 2*time.Second)
	if asked.Load() != before {
		t.Error("Nobody should be asked after the end")
	}

	// It goes at once, and has no finalizer that would need a provider.
	if err := kube.Delete(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(cr), cr); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("want it to be gone, got %v", err)
	}
}

// made is a pod as a Job makes it.
func made(namespace, index, failures string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "fraud-r1-" + index,
			Labels:          map[string]string{crew.LabelTraining: "fraud", batchv1.JobNameLabel: "fraud-r1", batchv1.JobCompletionIndexAnnotation: index},
			Annotations:     map[string]string{batchv1.JobIndexFailureCountAnnotation: failures},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "fraud-r1", UID: "1", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: crew.Container, Image: "fraud:1"}}},
	}
}

func write(t *testing.T, kube client.Client, p *corev1.Pod) {
	t.Helper()
	if err := kube.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, kube client.Client, cr *v1alpha1.Run, what string, ok func(v1alpha1.RunObservation) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(cr), cr); err != nil {
			t.Fatal(err)
		}
		if ok(cr.Status.AtProvider) {
			return
		}
	}
	t.Fatalf("want that %s, got %+v", what, cr.Status.AtProvider)
}
