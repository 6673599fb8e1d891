// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

var (
	_ managed.TypedExternalConnector[*v1alpha1.Topology] = &observer{}
	_ managed.TypedExternalClient[*v1alpha1.Topology]    = &observer{}
)

// Connect has nothing to connect to: all of it is in the cluster itself.
func (o *observer) Connect(context.Context, *v1alpha1.Topology) (managed.TypedExternalClient[*v1alpha1.Topology], error) {
	return o, nil
}

// Observe the members. A Database without members exists for us like any other, until its Topology is deleted: then it exists as
// long as something must be removed.
func (o *observer) Observe(ctx context.Context, cr *v1alpha1.Topology) (managed.ExternalObservation, error) {
	v, err := o.look(ctx, cr)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	seen := v.facts()
	if seen.Signals, err = o.board.Active(ctx, target(cr), v.was.Signals, v.now); err != nil {
		return managed.ExternalObservation{}, err
	}
	if f := seen.LastFailover; f != nil && (v.was.LastFailover == nil || !f.At.Equal(&v.was.LastFailover.At)) {
		o.counts.failover(cr.GetNamespace(), f.Cause)
	}
	cr.Status.AtProvider = seen
	o.remember(cr, v)
	if meta.WasDeleted(cr) {
		left, err := o.left(ctx, cr)
		return managed.ExternalObservation{ResourceExists: left != "", ResourceUpToDate: true}, err
	}
	cr.SetConditions(xpv2.Available().WithObservedGeneration(cr.GetGeneration()))
	if left := o.gather.wait(client.ObjectKeyFromObject(cr), v.was, seen, v.now); left > 0 {
		cr.Status.AtProvider = v.was
		o.again(client.ObjectKeyFromObject(cr), left)
	}
	what, _ := v.due(seen.Leader)
	if what == await {
		o.again(client.ObjectKeyFromObject(cr), switchoverPace)
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: what == nothing || what == await}, nil
}

// remember how the leader is while it is healthy.
func (o *observer) remember(cr *v1alpha1.Topology, v *view) {
	at := cr.Status.AtProvider
	i := slices.IndexFunc(at.Members, func(m v1alpha1.TopologyMember) bool { return m.Role == v1alpha1.RoleLeader })
	if i < 0 || at.Members[i].State != v1alpha1.MemberRunning || !at.Members[i].Ready {
		return
	}
	if p := v.pod(at.Leader); p != nil {
		o.memory.remember(cr.GetNamespace(), cr.Spec.ForProvider.Scope, ledBy(p))
	}
}

// look at everything that facts are made of, in the cache. Only events about missing pods are read from the API server.
func (o *observer) look(ctx context.Context, cr *v1alpha1.Topology) (*view, error) {
	p := cr.Spec.ForProvider
	v := &view{
		parameters: p,
		was:        *cr.Status.AtProvider.DeepCopy(),
		records:    map[string]map[string]string{},
		recalled:   o.memory.recall(cr.GetNamespace(), p.Scope),
		now:        o.now(),
	}
	of := []client.ListOption{client.InNamespace(cr.GetNamespace()), client.MatchingLabels{v1alpha1.LabelDatabase: p.Database}}
	pods := &corev1.PodList{}
	if err := o.seen.List(ctx, pods, of...); err != nil {
		return nil, fmt.Errorf("cannot list pods of Database %q: %w", p.Database, err)
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := o.seen.List(ctx, claims, of...); err != nil {
		return nil, fmt.Errorf("cannot list volume claims of Database %q: %w", p.Database, err)
	}
	nodes := &corev1.NodeList{}
	if err := o.seen.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("cannot list nodes: %w", err)
	}
	v.pods = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return memberOf(&p) == "" })
	v.claims, v.nodes = claims.Items, nodes.Items

	// There is one pod of each member, or for a moment the one that goes and its successor: the successor counts.
	slices.SortFunc(v.pods, func(a, b corev1.Pod) int {
		return map[bool]int{true: 1}[a.DeletionTimestamp != nil] - map[bool]int{true: 1}[b.DeletionTimestamp != nil]
	})
	if p.Scope != "" {
		maps := &metav1.PartialObjectMetadataList{}
		maps.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		if err := o.seen.List(ctx, maps, append(of, client.MatchingLabels{v1alpha1.LabelDatabase: p.Database, v1alpha1.LabelScope: p.Scope})...); err != nil {
			return nil, fmt.Errorf("cannot list ConfigMaps of scope %q: %w", p.Scope, err)
		}
		for i := range maps.Items {
			v.records[suffixOf(&maps.Items[i])] = maps.Items[i].GetAnnotations()
		}
	}
	v.absent = o.absent(ctx, cr, v)
	return v, nil
}

// poll is the interval after which a Topology is observed without an event: shorter while a member is missing, because no event
// says why a pod is not created.
func (o *observer) poll(mg resource.Managed, every time.Duration) time.Duration {
	every = kind.Poll(mg, every)
	cr, ok := mg.(*v1alpha1.Topology)
	if !ok {
		return every
	}
	if !cr.Spec.ForProvider.Hibernated && slices.ContainsFunc(cr.Status.AtProvider.Members, func(m v1alpha1.TopologyMember) bool {
		return m.State == v1alpha1.MemberStopped && m.Node == "" || m.State == v1alpha1.MemberFailed
	}) {
		every = min(every, missing)
	}
	for _, s := range cr.Status.AtProvider.Signals {
		every = min(every, max(s.Until.Sub(o.now()), time.Second))
	}
	return every
}

// missing is how often to look why a member is missing.
const missing = 30 * time.Second

// Create does nothing: what is observed is there.
func (o *observer) Create(context.Context, *v1alpha1.Topology) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, nil
}

// Update does what is due about a switchover. Everything else is only observed.
func (o *observer) Update(ctx context.Context, cr *v1alpha1.Topology) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, o.switchOver(ctx, cr)
}

// Disconnect does nothing: there is no connection.
func (o *observer) Disconnect(context.Context) error { return nil }
