// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

func credential(ns, name string) *credentialsv1alpha1.Credential {
	return &credentialsv1alpha1.Credential{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
}

func available(ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := get(ctx, credential(ns, name), ns, name)
		if err != nil {
			return err
		}
		if ready := c.GetCondition(xpv2.TypeReady); ready.Status != corev1.ConditionTrue {
			return fmt.Errorf("condition Ready is %s, Synced says %s", ready.Status, c.GetCondition(xpv2.TypeSynced).Message)
		}

		return nil
	}
}

func TestCredentialSurvivesItsOwnDeletion(t *testing.T) {
	ns := namespace(t)
	if err := apply(t.Context(), credential(ns, "orders")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Credential is Ready", available(ns, "orders"))
	before, err := get(t.Context(), &corev1.Secret{}, ns, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if len(before.Data[credentialsv1alpha1.KeyPassword]) != 32 || len(before.OwnerReferences) != 0 {
		t.Errorf("the password has %d characters and the Secret %d owners, want 32 and none",
			len(before.Data[credentialsv1alpha1.KeyPassword]), len(before.OwnerReferences))
	}

	if err := kube.Delete(t.Context(), credential(ns, "orders")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Credential is gone", func(ctx context.Context) error {
		_, err := get(ctx, credential(ns, "orders"), ns, "orders")
		if err == nil {
			return errors.New("it is still there")
		}

		return resource.IgnoreNotFound(err)
	})
	if _, err := get(t.Context(), &corev1.Secret{}, ns, "orders"); err != nil {
		t.Fatalf("the Secret went with the Credential: %v", err)
	}

	if err := apply(t.Context(), credential(ns, "orders")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Credential is Ready again", available(ns, "orders"))
	after, err := get(t.Context(), &corev1.Secret{}, ns, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if after.UID != before.UID || !cmp.Equal(before.Data, after.Data) {
		t.Error("the Secret is not the same bytes as before")
	}
}

func TestCredentialRotates(t *testing.T) {
	ns := namespace(t)
	c := credential(ns, "orders")
	c.Spec.ForProvider = credentialsv1alpha1.CredentialParameters{
		Keys: []credentialsv1alpha1.Key{{
			Name:   credentialsv1alpha1.KeyPassword,
			Derive: []credentialsv1alpha1.Derivation{{Format: credentialsv1alpha1.FormatSCRAM, Key: "verifier"}},
		}},
		Rotation: &credentialsv1alpha1.Rotation{Every: "720h", ID: "first"},
		Connection: &credentialsv1alpha1.Connection{
			Type: credentialsv1alpha1.TypePostgreSQL, Host: "orders-db-rw", Port: ptr.To[int32](5432), Username: "orders",
		},
	}
	if err := apply(t.Context(), c.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Credential is Ready", available(ns, "orders"))
	first, err := get(t.Context(), &corev1.Secret{}, ns, "orders")
	if err != nil {
		t.Fatal(err)
	}
	seen, err := get(t.Context(), credential(ns, "orders"), ns, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if first.Type != "servicebinding.io/postgresql" || seen.Status.Binding == nil || seen.Status.Binding.Name != "orders" {
		t.Errorf("the Secret is of type %q and the binding %v, want a Service Binding", first.Type, seen.Status.Binding)
	}

	// On demand.
	c.Spec.ForProvider.Rotation.ID = "second"
	if err := apply(t.Context(), c.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	second := rotated(t, ns, first)

	// On schedule: the last rotation was long ago.
	past := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+credentialsv1alpha1.AnnotationRotatedAt+`":"2020-01-01T00:00:00Z"}}}`))
	if err := kube.Patch(t.Context(), second.DeepCopy(), past); err != nil {
		t.Fatal(err)
	}
	look := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"capstan.dev/look":"now"}}}`))
	if err := kube.Patch(t.Context(), credential(ns, "orders"), look); err != nil {
		t.Fatal(err)
	}
	rotated(t, ns, second)

	eventually(t, "the Credential is Ready", available(ns, "orders"))
	after, err := get(t.Context(), credential(ns, "orders"), ns, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if after.Status.AtProvider.Identity == "" || after.Status.AtProvider.Identity != seen.Status.AtProvider.Identity {
		t.Errorf("the identity was %q and is %q", seen.Status.AtProvider.Identity, after.Status.AtProvider.Identity)
	}
	if next := after.Status.AtProvider.NextRotation; next == nil || time.Until(next.Time) < 719*time.Hour {
		t.Errorf("the next rotation is at %v, want it in 720h", next)
	}
}

// rotated waits until the Secret has other values than before, and the previous ones beside them.
func rotated(t *testing.T, ns string, before *corev1.Secret) *corev1.Secret {
	t.Helper()
	after := &corev1.Secret{}
	eventually(t, "the values are rotated", func(ctx context.Context) error {
		var err error
		if after, err = get(ctx, &corev1.Secret{}, ns, before.Name); err != nil {
			return err
		}
		for _, k := range []string{credentialsv1alpha1.KeyPassword, "verifier"} {
			if cmp.Equal(before.Data[k], after.Data[k]) {
				return fmt.Errorf("key %q is still the same", k)
			}
			if !cmp.Equal(before.Data[k], after.Data[k+credentialsv1alpha1.SuffixPrevious]) {
				return fmt.Errorf("the previous value of key %q is not kept", k)
			}
		}
		if cmp.Equal(before.Data[credentialsv1alpha1.KeyURI], after.Data[credentialsv1alpha1.KeyURI]) {
			return errors.New("the URI is still the same")
		}

		return nil
	})

	return after
}

func TestCredentialLeavesStrangersAlone(t *testing.T) {
	ns := namespace(t)
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orders"},
		Data:       map[string][]byte{"password": []byte("somebody's own")},
	}
	if err := kube.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	if err := apply(t.Context(), credential(ns, "orders")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the refusal is reported", func(ctx context.Context) error {
		c, err := get(ctx, credential(ns, "orders"), ns, "orders")
		if err != nil {
			return err
		}
		if synced := c.GetCondition(xpv2.TypeSynced); synced.Status != corev1.ConditionFalse {
			return fmt.Errorf("condition Synced is %s", synced.Status)
		}

		return nil
	})
	got, err := get(t.Context(), &corev1.Secret{}, ns, "orders")
	if err != nil || string(got.Data["password"]) != "somebody's own" || got.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("the stranger's Secret was touched (%v)", err)
	}
	if kerrors.IsNotFound(err) {
		t.Error("the stranger's Secret was deleted")
	}
}
