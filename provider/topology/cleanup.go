// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	// annotationCertificate is what cert-manager writes on a Secret that it makes.
	annotationCertificate = "cert-manager.io/certificate-name"

	// groupCertManager is of cert-manager's kinds.
	groupCertManager = "cert-manager.io"

	// certificateTimeout is how long a Certificate may stay after its Topology was deleted before its Secret is left to it.
	certificateTimeout = 2 * time.Minute

	// certificatesGo is how often one looks whether Certificates are gone.
	certificatesGo = 5 * time.Second
)

// left is the first thing that keeps a Topology that is deleted, or "". It asks the API server: of what has gone already the
// cache may not know.
func (o *observer) left(ctx context.Context, cr *v1alpha1.Topology) (string, error) {
	pod, err := o.memberLeft(ctx, cr)
	if pod != "" || err != nil {
		return pod, err
	}
	maps, err := o.configMaps(ctx, cr)
	if err != nil {
		return "", err
	}
	if len(maps) > 0 {
		return fmt.Sprintf("ConfigMap %q", maps[0].GetName()), nil
	}
	for _, name := range cr.Spec.ForProvider.RemoveSecrets {
		s, waits, err := o.removable(ctx, cr, name)
		if err != nil {
			return "", err
		}
		if s != nil || waits {
			return fmt.Sprintf("Secret %q", name), nil
		}
	}
	return "", nil
}

// memberLeft is a pod of a member that is still there, or "".
func (o *observer) memberLeft(ctx context.Context, cr *v1alpha1.Topology) (string, error) {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	p := cr.Spec.ForProvider
	if err := o.direct.List(ctx, pods, client.InNamespace(cr.GetNamespace()),
		client.MatchingLabels{v1alpha1.LabelDatabase: p.Database}, client.HasLabels{v1alpha1.LabelMember}); err != nil {
		return "", fmt.Errorf("cannot list pods of Database %q: %w", p.Database, err)
	}
	if len(pods.Items) > 0 {
		return fmt.Sprintf("pod %q", pods.Items[0].GetName()), nil
	}
	return "", nil
}

// Delete what members have left behind, once none of them is there. It is called until Observe finds nothing any more.
func (o *observer) Delete(ctx context.Context, cr *v1alpha1.Topology) (managed.ExternalDelete, error) {
	if pod, err := o.memberLeft(ctx, cr); pod != "" || err != nil {
		return managed.ExternalDelete{}, err
	}
	maps, err := o.configMaps(ctx, cr)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	for i := range maps {
		if err := o.remove(ctx, &maps[i]); err != nil {
			return managed.ExternalDelete{}, fmt.Errorf("cannot delete ConfigMap %q: %w", maps[i].GetName(), err)
		}
	}
	after := settle
	for _, name := range cr.Spec.ForProvider.RemoveSecrets {
		s, waits, err := o.removable(ctx, cr, name)
		if err != nil {
			return managed.ExternalDelete{}, err
		}
		if waits {
			after = certificatesGo
		}
		if s == nil {
			continue
		}
		if err := o.remove(ctx, s); err != nil {
			return managed.ExternalDelete{}, fmt.Errorf("cannot delete Secret %q: %w", name, err)
		}
	}

	// What the queue has waited for the members counts no longer.
	o.again(client.ObjectKeyFromObject(cr), after)
	return managed.ExternalDelete{}, nil
}

// configMaps that members have made. Those that something owns are the owner's, as <scope>-config is the composition's.
func (o *observer) configMaps(ctx context.Context, cr *v1alpha1.Topology) ([]metav1.PartialObjectMetadata, error) {
	p := cr.Spec.ForProvider
	if p.Scope == "" {
		return nil, nil
	}
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := o.direct.List(ctx, l, client.InNamespace(cr.GetNamespace()),
		client.MatchingLabels{v1alpha1.LabelDatabase: p.Database, v1alpha1.LabelScope: p.Scope}); err != nil {
		return nil, fmt.Errorf("cannot list ConfigMaps of scope %q: %w", p.Scope, err)
	}
	var out []metav1.PartialObjectMetadata
	for _, m := range l.Items {
		if suffixOf(&m) != "" && len(m.GetOwnerReferences()) == 0 && m.DeletionTimestamp == nil {
			m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			out = append(out, m)
		}
	}
	return out, nil
}

// removable is the Secret of a certificate if it can go, or whether that is still to be waited for: cert-manager would make it
// again as long as it has the Certificate. What is not cert-manager's, or has another owner, stays.
func (o *observer) removable(ctx context.Context, cr *v1alpha1.Topology, name string) (*metav1.PartialObjectMetadata, bool, error) {
	s := &metav1.PartialObjectMetadata{}
	s.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	key := client.ObjectKey{Namespace: cr.GetNamespace(), Name: name}
	if err := o.direct.Get(ctx, key, s); err != nil {
		if kerrors.IsNotFound(err) {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("cannot get Secret %q: %w", name, err)
	}
	certificate := s.GetAnnotations()[annotationCertificate]
	if certificate == "" || s.DeletionTimestamp != nil {
		return nil, false, nil
	}
	for _, r := range s.GetOwnerReferences() {
		gv, err := schema.ParseGroupVersion(r.APIVersion)
		if err != nil || gv.Group != groupCertManager || r.Kind != "Certificate" {
			return nil, false, nil //nolint:nilerr // An owner that cannot be read is another one.
		}
	}
	c := &metav1.PartialObjectMetadata{}
	c.SetGroupVersionKind(schema.GroupVersionKind{Group: groupCertManager, Version: "v1", Kind: "Certificate"})
	switch err := o.direct.Get(ctx, client.ObjectKey{Namespace: cr.GetNamespace(), Name: certificate}, c); {
	case kerrors.IsNotFound(err), meta.IsNoMatchError(err):
		return s, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("cannot get Certificate %q: %w", certificate, err)
	default:
		return nil, o.now().Sub(cr.GetDeletionTimestamp().Time) < certificateTimeout, nil
	}
}

// remove an object that was read, and no other one of its name.
func (o *observer) remove(ctx context.Context, m *metav1.PartialObjectMetadata) error {
	uid, version := m.GetUID(), m.GetResourceVersion()
	return client.IgnoreNotFound(o.kube.Delete(ctx, m,
		client.Preconditions{UID: &uid, ResourceVersion: &version}))
}
