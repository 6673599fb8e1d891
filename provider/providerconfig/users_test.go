// SPDX-License-Identifier: Apache-2.0

package providerconfig

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// usage of the config by a managed resource.
func usage(by string) *v1alpha1.ProviderConfigUsage {
	u := &v1alpha1.ProviderConfigUsage{}
	u.Namespace, u.Name = name.Namespace, by
	u.Labels = map[string]string{xpv2.LabelKeyProviderName: name.Name, xpv2.LabelKeyProviderKind: "ProviderConfig"}
	u.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Bucket", Name: by, UID: "u", Controller: new(true)}}
	u.ProviderConfigReference = xpv2.ProviderConfigReference{Kind: "ProviderConfig", Name: name.Name}
	return u
}

// TestAccounts counts what a config costs that is as it should be.
func TestAccounts(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	pc := config()
	writes := map[string]int{}
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(pc, usage("a")).WithStatusSubresource(&v1alpha1.ProviderConfig{}).
		WithInterceptorFuncs(interceptor.Funcs{
			// The cache of a manager tells the kind.
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, o, opts...)
				o.GetObjectKind().SetGroupVersionKind(v1alpha1.ProviderConfigGroupVersionKind)
				return err
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				writes["config"]++
				return c.Update(ctx, o, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				writes["status"]++
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build()
	r := accounts(&xpfake.Manager{Client: kube, Scheme: s}, v1alpha1.ProviderConfigGroupVersionKind)
	reconciled := func() map[string]int {
		t.Helper()
		clear(writes)
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: name}); err != nil {
			t.Fatal(err)
		}
		return writes
	}
	if diff := cmp.Diff(map[string]int{"config": 1, "status": 1}, reconciled()); diff != "" {
		t.Errorf("A new config gets a finalizer and a count; -want, +got:\n%s", diff)
	}
	if err := kube.Create(t.Context(), usage("b")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"status": 1}, reconciled()); diff != "" {
		t.Errorf("Another user changes the count alone; -want, +got:\n%s", diff)
	}
	if err := kube.Get(t.Context(), name, pc); err != nil || pc.Status.Users != 2 {
		t.Errorf("want two users, got %d (%v)", pc.Status.Users, err)
	}
}

// TestUsers has a thousand users that come at once be counted together.
func TestUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		h, begin := users(v1alpha1.ProviderConfigGroupVersionKind), time.Now()
		for i := range 1000 {
			h.Create(t.Context(), event.CreateEvent{Object: usage(strconv.Itoa(i))}, q)
			time.Sleep(time.Millisecond)
		}
		h.Delete(t.Context(), event.DeleteEvent{Object: usage("0")}, q)
		if q.Len() != 0 {
			t.Error("users that come are counted a moment later")
		}
		got, _ := q.Get()
		if got != (reconcile.Request{NamespacedName: name}) || time.Since(begin) != counted {
			t.Errorf("want the config after %s, got %s after %s", counted, got, time.Since(begin))
		}
		q.Done(got)
		time.Sleep(time.Minute)
		if q.Len() != 0 {
			t.Error("all of them are counted at once")
		}
	})
}
