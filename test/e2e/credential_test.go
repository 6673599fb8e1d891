// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	eventually(t, "the refusal is told", func(ctx context.Context) error {
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
