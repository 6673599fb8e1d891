// SPDX-License-Identifier: Apache-2.0

package volumeclaim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// Update raises what claims request that is less than it should be, and makes the claims that are missing. Volumes are
// independent: one that cannot grow or be made does not hold up the others.
func (g *grower) Update(ctx context.Context, cr *v1alpha1.VolumeClaim) (managed.ExternalUpdate, error) {
	found, err := g.volumes(ctx, cr)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	var failed []error
	for _, v := range found {
		if v.lacks() {
			failed = append(failed, g.grow(ctx, client.ObjectKeyFromObject(v.claim), v.size))
		}
	}
	for _, c := range missing(cr, found) {
		failed = append(failed, g.make(ctx, c))
	}
	return managed.ExternalUpdate{}, errors.Join(failed...)
}

// missing claims, which no StatefulSet can make: what it makes cannot change, and a member may get a volume for its write-ahead log later.
// A volume that is filled from a snapshot is made once. What a StatefulSet makes again later must be empty.
func missing(cr *v1alpha1.VolumeClaim, found []volume) []*corev1.PersistentVolumeClaim {
	p := cr.Spec.ForProvider
	if p.Identity == "" || cr.GetDeletionTimestamp() != nil {
		return nil
	}
	var all []*corev1.PersistentVolumeClaim
	add := func(c *corev1.PersistentVolumeClaim) {
		if !slices.ContainsFunc(found, func(v volume) bool { return v.claim.GetName() == c.GetName() }) {
			all = append(all, c)
		}
	}
	if f := p.Filled; f != nil {
		c := newClaim(cr, "data", f.Member, p.Size, f.StorageClassName)
		// Labels that say whose it is are not replaced.
		own := c.Labels
		c.Labels = maps.Clone(f.Labels)
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		maps.Copy(c.Labels, own)
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new(snapshotGroup), Kind: "VolumeSnapshot", Name: f.Snapshot}
		add(c)
	}
	if p.WALVolumes != nil {
		for _, member := range slices.Sorted(slices.Values(p.Members)) {
			c := newClaim(cr, observev1alpha1.VolumeWAL, member, p.WALVolumes.Size, p.WALVolumes.StorageClassName)
			c.Labels[observev1alpha1.LabelVolume] = observev1alpha1.VolumeWAL
			add(c)
		}
	}
	return all
}

// snapshotGroup is the API group of VolumeSnapshots.
const snapshotGroup = "snapshot.storage.k8s.io"

// newClaim of a member. It has a provisional uid, by which refusals are known.
func newClaim(cr *v1alpha1.VolumeClaim, volume, member string, size resource.Quantity, class string) *corev1.PersistentVolumeClaim {
	p, name := cr.Spec.ForProvider, volume+"-"+member+"-0"
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cr.GetNamespace(), Name: name, UID: types.UID(cr.GetNamespace() + "/" + name),
			Labels: map[string]string{
				observev1alpha1.LabelDatabase: p.Database, observev1alpha1.LabelMember: member, observev1alpha1.LabelIdentity: p.Identity,
			},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
	if class != "" {
		c.Spec.StorageClassName = &class
	}
	return c
}

// make a claim.
func (g *grower) make(ctx context.Context, provisional *corev1.PersistentVolumeClaim) error {
	c := provisional.DeepCopy()
	c.UID = ""
	err := g.kube.Create(ctx, c)
	g.refusals.note(provisional, *c.Spec.Resources.Requests.Storage(), err)
	if err != nil {
		return fmt.Errorf("cannot make volume claim %q: %w", provisional.GetName(), err)
	}
	return nil
}

// grow a claim. What the API server has now counts: it may be more by now, and that must not become less.
func (g *grower) grow(ctx context.Context, of types.NamespacedName, size resource.Quantity) error {
	claim := &corev1.PersistentVolumeClaim{}
	if err := g.direct.Get(ctx, of, claim); err != nil {
		return fmt.Errorf("cannot get volume claim %q: %w", of.Name, err)
	}
	if requested := claim.Spec.Resources.Requests.Storage(); requested.Cmp(size) >= 0 {
		return nil
	}
	before := claim.DeepCopy()
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = size
	err := g.kube.Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	g.refusals.note(before, size, err)
	if err != nil {
		return fmt.Errorf("cannot let volume claim %q grow to %s: %w", of.Name, size.String(), err)
	}
	return nil
}

// refusals of the API server, for instance because of a quota. They are kept until a request is taken, so that the message does
// not change between two tries.
type refusals struct {
	mu  sync.Mutex
	all map[types.UID]refusal
}

// A refusal of a size.
type refusal struct{ size, message string }

func newRefusals() *refusals { return &refusals{all: map[types.UID]refusal{}} }

// note what became of a try. Only what the API server says about the request itself is a refusal: all else passes by itself.
func (r *refusals) note(claim *corev1.PersistentVolumeClaim, size resource.Quantity, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case kerrors.IsForbidden(err), kerrors.IsInvalid(err), kerrors.IsAlreadyExists(err):
		message := "the API server refuses the request: " + words.Bounded(words.OneLine(err.Error()), maxMessage)
		r.all[claim.GetUID()] = refusal{size: size.String(), message: message}
	case err == nil, kerrors.IsNotFound(err):
		delete(r.all, claim.GetUID())
	}
}

// of a claim and a size, or "".
func (r *refusals) of(claim *corev1.PersistentVolumeClaim, size resource.Quantity) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was := r.all[claim.GetUID()]; was.size == size.String() {
		return was.message
	}
	return ""
}
