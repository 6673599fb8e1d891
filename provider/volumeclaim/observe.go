// SPDX-License-Identifier: Apache-2.0

package volumeclaim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

var (
	_ managed.TypedExternalConnector[*v1alpha1.VolumeClaim] = &grower{}
	_ managed.TypedExternalClient[*v1alpha1.VolumeClaim]    = &grower{}
)

// A grower lets volumes grow.
type grower struct {
	// Volumes outlive everything.
	kind.Nothing[*v1alpha1.VolumeClaim]

	// kube writes.
	kube client.Client

	// seen holds what Setup watches, and direct reads from the API server.
	seen, direct client.Reader

	// refusals are requests that the API server has refused.
	refusals *refusals
}

// Connect has nothing to connect to: all of it is in the cluster itself.
func (g *grower) Connect(context.Context, *v1alpha1.VolumeClaim) (managed.TypedExternalClient[*v1alpha1.VolumeClaim], error) {
	return g, nil
}

// Observe the volumes. They exist for us even when there is none yet, because StatefulSets make the claims of data.
func (g *grower) Observe(ctx context.Context, cr *v1alpha1.VolumeClaim) (managed.ExternalObservation, error) {
	found, err := g.volumes(ctx, cr)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	at := v1alpha1.VolumeClaimObservation{State: v1alpha1.VolumePending}
	upToDate := true
	for i, v := range found {
		told := v.observation()
		at.Volumes = append(at.Volumes, told)
		if i == 0 || urgency(told.State) > urgency(at.State) {
			at.State = told.State
		}
		upToDate = upToDate && !v.lacks()
	}
	for _, c := range missing(cr, found) {
		upToDate = false
		if refused := g.refusals.of(c, *c.Spec.Resources.Requests.Storage()); refused != "" {
			at.State = v1alpha1.VolumeFailed
			at.Volumes = append(at.Volumes, refusedClaim(c, refused))
		}
	}
	cr.Status.AtProvider = at
	cr.SetConditions(judge(at).WithObservedGeneration(cr.GetGeneration()))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: upToDate}, nil
}

// refusedClaim is one that the API server does not take.
func refusedClaim(c *corev1.PersistentVolumeClaim, why string) v1alpha1.VolumeObservation {
	o := v1alpha1.VolumeObservation{Name: c.GetName(), Member: c.GetLabels()[observev1alpha1.LabelMember], State: v1alpha1.VolumeFailed, Message: why}
	if c.GetLabels()[observev1alpha1.LabelVolume] == observev1alpha1.VolumeWAL {
		o.Holds = v1alpha1.HoldsWAL
	}
	return o
}

// volumes that a VolumeClaim is of, by name.
func (g *grower) volumes(ctx context.Context, cr *v1alpha1.VolumeClaim) ([]volume, error) {
	p := cr.Spec.ForProvider
	if p.Identity == "" {
		return nil, nil
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := g.seen.List(ctx, claims, client.InNamespace(cr.GetNamespace()), client.MatchingLabels{
		observev1alpha1.LabelDatabase: p.Database, observev1alpha1.LabelIdentity: p.Identity,
	}); err != nil {
		return nil, fmt.Errorf("cannot list volume claims of Database %q: %w", p.Database, err)
	}
	var found []volume
	for i := range claims.Items {
		c := &claims.Items[i]
		if !slices.Contains(p.Members, c.GetLabels()[observev1alpha1.LabelMember]) {
			continue
		}
		v := volume{claim: c, size: p.Size}
		if v.holdsWAL() {
			v.size = *c.Spec.Resources.Requests.Storage()
			if p.WALVolumes != nil {
				v.size = p.WALVolumes.Size
			}
		}
		v.refused = g.refusals.of(c, v.size)
		if name := c.Spec.StorageClassName; name != nil && *name != "" {
			class := &storagev1.StorageClass{}
			switch err := g.seen.Get(ctx, client.ObjectKey{Name: *name}, class); {
			case err == nil:
				v.class = class
			case !kerrors.IsNotFound(err):
				return nil, fmt.Errorf("cannot get StorageClass %q: %w", *name, err)
			}
		}
		found = append(found, v)
	}
	slices.SortFunc(found, func(a, b volume) int { return strings.Compare(a.claim.GetName(), b.claim.GetName()) })
	return found, nil
}

// urgency of a state: states that need a person come first.
func urgency(state string) int {
	return slices.Index([]string{
		v1alpha1.VolumeReady, v1alpha1.VolumePending, v1alpha1.VolumeFileSystemPending, v1alpha1.VolumeGrowing,
		v1alpha1.VolumeNotExpandable, v1alpha1.VolumeFailed,
	}, state)
}

// judge whether volumes are as they should be or on their way.
func judge(at v1alpha1.VolumeClaimObservation) xpv2.Condition {
	if at.State != v1alpha1.VolumeNotExpandable && at.State != v1alpha1.VolumeFailed {
		return xpv2.Available()
	}
	var words []string
	for _, v := range at.Volumes {
		if v.Message != "" {
			words = append(words, fmt.Sprintf("%s: %s", v.Name, v.Message))
		}
	}
	return xpv2.Unavailable().WithMessage(strings.Join(words, "; "))
}
