// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// details for users of the bucket. They never include the provider's own key.
func (e *external) details(ctx context.Context, cr *v1alpha1.Bucket, b found) (managed.ConnectionDetails, error) {
	d := managed.ConnectionDetails{
		v1alpha1.KeyEndpoint: []byte(b.endpoint),
		v1alpha1.KeyRegion:   []byte(b.region),
		v1alpha1.KeyBucket:   []byte(b.Name),
	}
	if e.client.CABundle != "" {
		d[v1alpha1.KeyCA] = []byte(e.client.CABundle)
	}
	k := e.client.Workload
	if own := e.tenant.Workload; own.ID != "" {
		k = &own
	}
	if k != nil {
		d[v1alpha1.KeyAccessKeyID] = []byte(k.ID)
		d[v1alpha1.KeySecretAccessKey] = []byte(k.Secret)
		if k.Session != "" {
			d[v1alpha1.KeySessionToken] = []byte(k.Session)
		}
	}
	return d, e.withdraw(ctx, cr, d)
}

// withdraw from the connection Secret what was published before and is no longer, because the config names no key or authority
// any more, or a key of another form. The runtime only adds to a Secret; a detail without value removes its key.
func (e *external) withdraw(ctx context.Context, cr *v1alpha1.Bucket, d managed.ConnectionDetails) error {
	var without []string
	for _, k := range []string{v1alpha1.KeyCA, v1alpha1.KeyAccessKeyID, v1alpha1.KeySecretAccessKey, v1alpha1.KeySessionToken} {
		if d[k] == nil {
			without = append(without, k)
		}
	}
	ref := cr.Spec.WriteConnectionSecretToReference
	if ref == nil || len(without) == 0 {
		return nil
	}
	s := &corev1.Secret{}
	err := e.kube.Get(ctx, types.NamespacedName{Namespace: cr.GetNamespace(), Name: ref.Name}, s)
	if kerrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return outside.InCluster("cannot get connection Secret %q: %w", ref.Name, err)
	}
	if !metav1.IsControlledBy(s, cr) {
		return nil // the runtime says so
	}
	for _, k := range without {
		if _, had := s.Data[k]; had {
			d[k] = nil
		}
	}
	return nil
}
