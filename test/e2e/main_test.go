// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e tests Capstan on a real cluster: real API server, kubelet, Crossplane, and our packages installed from a
// registry. `make e2e` starts what it needs; the environment names it:
//
//	KUBECONFIG            how to reach the cluster
//	CAPSTAN_AUDIT_LOG     the API server's audit log
//	CAPSTAN_REGISTRY      where the packages and the demo server were pushed
//	CAPSTAN_VERSION       their version
//	CAPSTAN_NEXT_VERSION  a second version of the function, for the upgrade
//	CAPSTAN_BUSYBOX       an image with a shell, for pods of clients
//	CAPSTAN_KUBELET       the folder of the first node's kubelet, in which a driver of devices listens
//	CAPSTAN_CLUSTER_COMMAND  disconnects nodes and connects them again, for Databases only; installs Kueue and snapshots, for their tests
//	CAPSTAN_ROOT          the repository, for the commands of its pages
//	CAPSTAN_ROUNDS        how often each fault hits a Database; 1 unless it is set
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// fieldOwner of everything the tests apply.
const fieldOwner = client.FieldOwner("capstan-e2e")

// timeout is the timeout of every wait, on two cores that run a whole cluster.
const timeout = 2 * time.Minute

// kube is the client of all tests; it reads from the API server and never from a cache.
var kube client.Client

// clients do what kube cannot: they read logs.
var clients *kubernetes.Clientset

func TestMain(m *testing.M) {
	if err := setUp(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func setUp() error {
	for _, name := range []string{"KUBECONFIG", "CAPSTAN_AUDIT_LOG", "CAPSTAN_REGISTRY", "CAPSTAN_VERSION", "CAPSTAN_NEXT_VERSION", "CAPSTAN_BUSYBOX"} {
		if os.Getenv(name) == "" {
			return fmt.Errorf("%s is not set: run these tests by `make e2e`", name)
		}
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
		observev1alpha1.AddToScheme(scheme), credentialsv1alpha1.AddToScheme(scheme),
		registryv1alpha1.AddToScheme(scheme), storagev1alpha1.AddToScheme(scheme),
		accessv1alpha1.AddToScheme(scheme), eventsv1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("cannot load the kubeconfig: %w", err)
	}
	config.QPS = -1
	if clients, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	kube, err = client.New(config, client.Options{Scheme: scheme})
	return err
}

// image of the demo server.
func image() string {
	return os.Getenv("CAPSTAN_REGISTRY") + "/capstan-dev/demo-algorithm:" + os.Getenv("CAPSTAN_VERSION")
}

// namespace creates a namespace that only admits pods of the Pod Security Standard "restricted" and removes it
// afterwards.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := kube.Create(t.Context(), ns); err != nil {
		t.Fatalf("cannot create a namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if t.Failed() {
			t.Log(report(ctx, ns.Name))
		}
		// Crossplane must delete composed objects before the deletion of the namespace blocks it.
		_ = kube.DeleteAllOf(ctx, &v1alpha1.Algorithm{}, client.InNamespace(ns.Name))
		_ = kube.Delete(ctx, ns)
	})

	return ns.Name
}

// report logs what a person would read first after a failed test.
func report(ctx context.Context, ns string) string {
	var b strings.Builder
	algorithms := &v1alpha1.AlgorithmList{}
	_ = kube.List(ctx, algorithms, client.InNamespace(ns))
	for _, a := range algorithms.Items {
		fmt.Fprintf(&b, "Algorithm %s: phase %s, %d ready\n", a.Name, a.Status.Phase, a.Status.ReadyReplicas)
		for _, c := range a.Status.Conditions {
			fmt.Fprintf(&b, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	events := &corev1.EventList{}
	_ = kube.List(ctx, events, client.InNamespace(ns))
	for _, e := range events.Items {
		fmt.Fprintf(&b, "Event %s %s/%s %s: %s\n", e.Type, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}

	return b.String()
}

// eventually runs check until it returns nil, and fails with its last error.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	within(t, timeout, what, check)
}

func within(t *testing.T, limit time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	start := time.Now()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			t.Logf("%s: after %s", what, time.Since(start).Round(100*time.Millisecond))

			return
		}
		// A timeout of the context is no information about what the test waits for.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, limit, last)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// get reads one object.
func get[T client.Object](ctx context.Context, obj T, ns, name string) (T, error) {
	err := kube.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, obj)

	return obj, err
}

// apply creates or updates an object like `kubectl apply --server-side`.
func apply(ctx context.Context, obj client.Object) error {
	gvk, err := kube.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	u.SetManagedFields(nil)
	u.SetResourceVersion("")

	return kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership)
}
