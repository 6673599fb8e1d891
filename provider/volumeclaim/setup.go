// SPDX-License-Identifier: Apache-2.0

// Package volumeclaim reconciles VolumeClaims: they let the volumes of a Database grow, make volumes for write-ahead logs, and report
// the progress.
//
// StatefulSets create the claims of data, and their templates for claims cannot be changed. So this package raises requests. It creates
// the claims of write-ahead logs, because a member may get such a volume when its StatefulSet exists already. It deletes and shrinks no
// claim. The rest is the work of the StorageClass' provisioner and of the
// kubelet, and reported in the status of the claim.
package volumeclaim

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

// Setup adds a controller of VolumeClaims to mgr, with a cache of its own for claims and StorageClasses.
func Setup(mgr ctrl.Manager, o controller.Options) error {
	seen, err := newCache(mgr)
	if err != nil {
		return err
	}
	g := &grower{kube: mgr.GetClient(), seen: seen, direct: mgr.GetAPIReader(), refusals: newRefusals()}
	w := &watcher{kube: mgr.GetClient(), log: o.Logger}
	return kind.Setup(mgr, o, v1alpha1.VolumeClaimGroupVersionKind, options(g), func(b *builder.Builder) {
		for _, of := range []client.Object{&corev1.PersistentVolumeClaim{}, &storagev1.StorageClass{}} {
			b.WatchesRawSource(source.Kind(seen, of, w.handler()))
		}
	})
}

func options(g *grower) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.VolumeClaimGroupVersionKind, g),

		// Claims have names of their own.
		managed.WithInitializers(),
	}
}
