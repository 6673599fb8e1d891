// SPDX-License-Identifier: Apache-2.0

package volumeclaim

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/seen"
)

// newCache holds claims of Databases, and StorageClasses, of each what it takes to let volumes grow.
func newCache(mgr ctrl.Manager) (cache.Cache, error) {
	return seen.New(mgr,
		seen.Objects{Kind: &corev1.PersistentVolumeClaim{}, Having: []string{observev1alpha1.LabelDatabase}, Slim: slimClaim},
		seen.Objects{Kind: &storagev1.StorageClass{}, Slim: slimClass},
	)
}

// slimClaim leaves of a claim whose it is, how large it is and how it grows.
func slimClaim(o any) (any, error) {
	c, ok := o.(*corev1.PersistentVolumeClaim)
	if !ok {
		return o, nil
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: slimMeta(c),
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: c.Spec.StorageClassName, Resources: c.Spec.Resources},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase: c.Status.Phase, Capacity: c.Status.Capacity, Conditions: c.Status.Conditions,
			AllocatedResourceStatuses: c.Status.AllocatedResourceStatuses,
		},
	}, nil
}

// slimClass leaves of a StorageClass whether its volumes grow.
func slimClass(o any) (any, error) {
	c, ok := o.(*storagev1.StorageClass)
	if !ok {
		return o, nil
	}
	return &storagev1.StorageClass{
		ObjectMeta: slimMeta(c), Provisioner: c.Provisioner, AllowVolumeExpansion: c.AllowVolumeExpansion,
	}, nil
}

func slimMeta(o client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		DeletionTimestamp: o.GetDeletionTimestamp(), Labels: o.GetLabels(),
	}
}
