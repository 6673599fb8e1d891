// SPDX-License-Identifier: Apache-2.0

package access

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// TestWakes: an Access that failed for long is tried as if it never had, once what it depends on has changed.
func TestWakes(t *testing.T) {
	topology := func(leader string) *observev1alpha1.Topology {
		o := &observev1alpha1.Topology{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
		o.Spec.ForProvider.Database, o.Status.AtProvider.Leader = "orders", leader
		return o
	}
	credential := func(secret string) *credentialsv1alpha1.Credential {
		o := &credentialsv1alpha1.Credential{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-app"}}
		o.Status.AtProvider.SecretName = secret
		return o
	}
	for name, tc := range map[string]struct {
		reason  string
		was, is client.Object
		want    bool
	}{
		"Leads":       {"A member leads at last.", topology(""), topology("orders-a"), true},
		"LeadsStill":  {"Nothing has changed for an Access.", topology("orders-a"), topology("orders-a"), false},
		"Nobody":      {"There is nobody to ask.", topology("orders-a"), topology(""), false},
		"Password":    {"A password that was missing is there.", credential(""), credential("orders-app"), true},
		"NotItsOwner": {"The Secret is of somebody else's login.", credential(""), credential("other"), false},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			cr := &v1alpha1.Access{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
			cr.Spec.ForProvider.Server.Host = "orders-rw.shop.svc"
			cr.Spec.ForProvider.Logins = []v1alpha1.Login{{Name: "app", PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "orders-app"}}}
			w := &watcher{kube: fake.NewClientBuilder().WithScheme(scheme).WithObjects(cr).Build()}
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			t.Cleanup(q.ShutDown)
			r := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "orders"}}
			q.AddRateLimited(r)
			switch tc.is.(type) {
			case *observev1alpha1.Topology:
				w.topology(t.Context(), tc.was, tc.is, q)
			case *credentialsv1alpha1.Credential:
				w.credential(t.Context(), tc.was, tc.is, q)
			}
			if got := q.NumRequeues(r) == 0; got != tc.want {
				t.Errorf("\n%s\nfailures are forgotten: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
