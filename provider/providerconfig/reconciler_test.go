// SPDX-License-Identifier: Apache-2.0

package providerconfig

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

var name = types.NamespacedName{Namespace: "shop", Name: "s3"}

// bench is a reconciler with a service that answers as told.
type bench struct {
	*reconciler

	t      *testing.T
	asked  int
	answer xpv2.Condition
	failed error
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, answer: outside.Answered()}
	b.reconciler = &reconciler{
		accounts: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}),
		kube: fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).
			WithStatusSubresource(&v1alpha1.ProviderConfig{}).Build(),
		newPC: func() resource.ProviderConfig { return &v1alpha1.ProviderConfig{} },
		check: func(context.Context, resource.ProviderConfig) (xpv2.Condition, error) {
			b.asked++
			return b.answer, b.failed
		},
		poll:  10 * time.Minute,
		asked: map[types.NamespacedName]question{},
	}
	return b
}

func (b *bench) reconcile() reconcile.Result {
	b.t.Helper()
	res, err := b.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: name})
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

func (b *bench) config() *v1alpha1.ProviderConfig {
	b.t.Helper()
	pc := &v1alpha1.ProviderConfig{}
	if err := b.kube.Get(b.t.Context(), name, pc); err != nil {
		b.t.Fatal(err)
	}
	return pc
}

func config() *v1alpha1.ProviderConfig {
	return &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: name.Namespace, Name: name.Name, UID: "one", Generation: 1,
	}}
}

func TestReconcile(t *testing.T) {
	b := newBench(t, config())
	if res := b.reconcile(); res.RequeueAfter < 9*time.Minute || res.RequeueAfter > 11*time.Minute {
		t.Errorf("A service that answers is asked again after the poll interval, got %s", res.RequeueAfter)
	}
	if got := b.config().GetCondition(v1alpha1.TypeConnected); got.Reason != v1alpha1.ReasonAnswered {
		t.Errorf("The answer should be told, got %+v", got)
	}
	for range 5 {
		if res := b.reconcile(); res.RequeueAfter <= 0 || res.RequeueAfter > known {
			t.Errorf("An answer counts for %s, got %s", known, res.RequeueAfter)
		}
	}
	if b.asked != 1 {
		t.Errorf("A burst of users should cause one question, got %d", b.asked)
	}
	pc := b.config()
	pc.Generation = 2
	if err := b.kube.Update(t.Context(), pc); err != nil {
		t.Fatal(err)
	}
	b.answer = outside.Failed(&outside.Failure{Reason: v1alpha1.ReasonUnreachable, Message: "m", Remedy: "r"})
	if res := b.reconcile(); res.RequeueAfter != 30*time.Second {
		t.Errorf("A service that does not answer is asked again soon, got %s", res.RequeueAfter)
	}
	if got := b.config().GetCondition(v1alpha1.TypeConnected); b.asked != 2 || got.Reason != v1alpha1.ReasonUnreachable || got.Message != "m: r" {
		t.Errorf("A changed config is asked about at once, got %d questions and %+v", b.asked, got)
	}
}

func TestReconcileLeavesAlone(t *testing.T) {
	deleted := config()
	now := metav1.Now()
	deleted.DeletionTimestamp, deleted.Finalizers = &now, []string{"in-use.crossplane.io"}
	for reason, b := range map[string]*bench{
		"A config that is gone is forgotten.":      newBench(t),
		"A config that goes is not asked about.":   newBench(t, deleted),
		"While the accounts wait nobody is asked.": newBench(t, config()),
	} {
		if reason[0:5] == "While" {
			b.accounts = reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{RequeueAfter: time.Second}, nil
			})
		}
		b.reconcile()
		if b.asked != 0 {
			t.Errorf("%s It was asked %d times", reason, b.asked)
		}
	}
}

func TestReconcileFails(t *testing.T) {
	boom := errors.New("boom")
	b := newBench(t, config())
	b.failed = boom
	if _, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: name}); !errors.Is(err, boom) {
		t.Errorf("An error of the API server is the runtime's, got %v", err)
	}
}
