// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestTellingKeepsTime shows that a service that answers and then refuses, in every reconcile, does not change the condition
// each time.
func TestTellingKeepsTime(t *testing.T) {
	refused := &Failure{Reason: v1alpha1.ReasonForbidden, Message: "no"}
	c := Reporting(managed.TypedExternalConnectorFn[*storagev1alpha1.Bucket](
		func(context.Context, *storagev1alpha1.Bucket) (managed.TypedExternalClient[*storagev1alpha1.Bucket], error) {
			return &managed.TypedExternalClientFns[*storagev1alpha1.Bucket]{
				ObserveFn: func(context.Context, *storagev1alpha1.Bucket) (managed.ExternalObservation, error) {
					return managed.ExternalObservation{}, nil
				},
				UpdateFn: func(context.Context, *storagev1alpha1.Bucket) (managed.ExternalUpdate, error) {
					return managed.ExternalUpdate{}, refused
				},
			}, nil
		}), Explain)
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	was := Failed(refused)
	was.LastTransitionTime = long
	cr := &storagev1alpha1.Bucket{}
	cr.SetConditions(was)
	e, err := c.Connect(t.Context(), cr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Observe(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	if got := cr.GetCondition(v1alpha1.TypeConnected); got.Reason != v1alpha1.ReasonAnswered || got.LastTransitionTime.Equal(&long) {
		t.Errorf("after Observe: want a new Answered, got %+v", got)
	}
	if _, err := e.Update(t.Context(), cr); err == nil {
		t.Fatal("the failure is lost")
	}
	if got := cr.GetCondition(v1alpha1.TypeConnected); !got.Equal(was) || !got.LastTransitionTime.Equal(&long) {
		t.Errorf("after Update: want the condition from before, got %+v", got)
	}
}
