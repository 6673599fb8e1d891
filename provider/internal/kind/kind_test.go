// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

func TestFinalizer(t *testing.T) {
	s := runtime.NewScheme()
	if err := storagev1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason   string
		policies xpv2.ManagementPolicies
		had      bool
		want     bool
	}{
		"All":       {reason: "What deletes has to wait for it.", policies: xpv2.ManagementPolicies{"*"}, want: true},
		"Delete":    {reason: "What deletes has to wait for it.", policies: xpv2.ManagementPolicies{"Observe", "Delete"}, want: true},
		"Keep":      {reason: "What leaves everything where it is waits for nobody.", policies: xpv2.ManagementPolicies{"Observe", "Create"}},
		"NoLonger":  {reason: "When the policies change, so does the finalizer.", policies: xpv2.ManagementPolicies{"Observe"}, had: true},
		"Unchanged": {reason: "It is added once.", policies: xpv2.ManagementPolicies{"*"}, had: true, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &storagev1alpha1.Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "assets"}}
			b.Spec.ManagementPolicies = tc.policies
			if tc.had {
				b.Finalizers = []string{managed.FinalizerName}
			}
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(b).Build()
			if err := NewFinalizer(kube).AddFinalizer(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(b.Finalizers, managed.FinalizerName); got != tc.want {
				t.Errorf("\n%s\nwant a finalizer: %t, got %v", tc.reason, tc.want, b.Finalizers)
			}
		})
	}
}

// forgetful answers as the API server does: with the status that it has.
type forgetful struct{ err error }

func (f forgetful) UpdateCriticalAnnotations(_ context.Context, o client.Object) error {
	if b, ok := o.(*storagev1alpha1.Bucket); ok {
		b.Status = storagev1alpha1.BucketStatus{}
	}
	return f.err
}

func TestAnnotatorKeepsWhatCreateTold(t *testing.T) {
	boom := errors.New("boom")
	for _, err := range []error{nil, boom} {
		b := &storagev1alpha1.Bucket{}
		b.SetConditions(xpv2.Condition{Type: v1alpha1.TypeConnected, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonForbidden})
		if got := (&annotator{CriticalAnnotationUpdater: forgetful{err}}).UpdateCriticalAnnotations(t.Context(), b); !errors.Is(got, err) {
			t.Errorf("want error %v, got %v", err, got)
		}
		if got := b.GetCondition(v1alpha1.TypeConnected); got.Reason != v1alpha1.ReasonForbidden {
			t.Errorf("What Create has told should stay, got %+v", got)
		}
	}
	b := &storagev1alpha1.Bucket{}
	if err := (&annotator{CriticalAnnotationUpdater: forgetful{}}).UpdateCriticalAnnotations(t.Context(), b); err != nil || len(b.Status.Conditions) != 0 {
		t.Errorf("What was not told should not appear, got %v, %v", b.Status.Conditions, err)
	}
}
