// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// TestSecretsFail shows that a Secret that cannot be read does not keep findings from being told.
func TestSecretsFail(t *testing.T) {
	one := pod("reco-a-1", waiting("InvalidImageName", ""))
	boom := errors.New("boom")
	kube := newKube(t, interceptor.Funcs{Get: func(
		ctx context.Context, k client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
	) error {
		if _, ok := o.(*corev1.Secret); ok {
			return boom
		}
		return k.Get(ctx, key, o, opts...)
	}}, &one)
	a := analysisOf("watch", "reco")
	a.Spec.ForProvider.Secrets = []string{"license"}
	a.Status.AtProvider.Secrets = []v1alpha1.SecretObservation{{Name: "license", Fingerprint: "0123456789abcdef"}}
	if _, err := newObserver(kube, time.Now).Observe(t.Context(), a); !errors.Is(err, boom) {
		t.Errorf("Observe(...): want %v, got %v", boom, err)
	}
	if len(a.Status.AtProvider.Findings) != 1 || len(a.Status.AtProvider.Secrets) != 1 {
		t.Errorf("Findings should be told, and what was known of Secrets stay, got %+v", a.Status.AtProvider)
	}
}
