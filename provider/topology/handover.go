// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// switchOver does what is due about a switchover, by what the API server has and not by what was seen before. The id is written
// down before the request to the members: if anything happens in between it was not carried out, and is not tried again.
func (o *observer) switchOver(ctx context.Context, cr *v1alpha1.Topology) error {
	p := cr.Spec.ForProvider
	config, err := o.recordMap(ctx, cr, members.SuffixConfig)
	if err != nil {
		return err
	}
	if config == nil {
		return fmt.Errorf("cannot write down switchover: there is no ConfigMap %q", p.Scope+"-"+members.SuffixConfig)
	}
	failover, err := o.recordMap(ctx, cr, members.SuffixFailover)
	if err != nil {
		return err
	}
	known := outcomes(config.GetAnnotations())
	var wishes map[string]string
	if failover != nil {
		wishes = failover.GetAnnotations()
	}
	what, outcome := due(known, p.Switchover, cr.Status.AtProvider.Leader, wishes, o.now())
	if what != begin && what != end {
		return nil
	}
	if err := o.writeDown(ctx, config, known, outcome); err != nil {
		return err
	}
	switch {
	case what == begin:
		err = o.ask(ctx, cr, failover, outcome)
	case failover != nil && wishes[members.AnnotationLeader] == outcome.From+"-0" && wishes[members.AnnotationCandidate] == outcome.To+"-0":
		// No member may act on it later.
		err = o.put(ctx, failover, nil, nil)
	}
	o.again(client.ObjectKeyFromObject(cr), switchoverPace)
	return err
}

// recordMap is one of the ConfigMaps of members, or nil.
func (o *observer) recordMap(ctx context.Context, cr *v1alpha1.Topology, suffix string) (*metav1.PartialObjectMetadata, error) {
	p := cr.Spec.ForProvider
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	name := p.Scope + "-" + suffix
	if err := o.direct.Get(ctx, client.ObjectKey{Namespace: cr.GetNamespace(), Name: name}, m); err != nil {
		if kerrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // Both callers ask whether it is there.
		}
		return nil, fmt.Errorf("cannot get ConfigMap %q: %w", name, err)
	}
	if m.GetLabels()[v1alpha1.LabelDatabase] != p.Database || m.GetLabels()[v1alpha1.LabelScope] != p.Scope {
		return nil, fmt.Errorf("cannot use ConfigMap %q: it has not the labels of Database %q", name, p.Database)
	}
	return m, nil
}

// writeDown an outcome, unless another program wrote in between.
func (o *observer) writeDown(ctx context.Context, config *metav1.PartialObjectMetadata, known []v1alpha1.SwitchoverOutcome, outcome v1alpha1.SwitchoverOutcome) error {
	all := slices.DeleteFunc(slices.Clone(known), func(k v1alpha1.SwitchoverOutcome) bool { return k.ID == outcome.ID })
	all = append(all, outcome)
	raw, err := json.Marshal(all[max(0, len(all)-remembered):])
	if err != nil {
		return fmt.Errorf("cannot encode switchovers: %w", err)
	}
	text := string(raw)
	return o.annotate(ctx, config, map[string]*string{annotationSwitchovers: &text})
}

// ask the members. The leader is named, so that nothing happens when it is another one.
func (o *observer) ask(ctx context.Context, cr *v1alpha1.Topology, failover *metav1.PartialObjectMetadata, outcome v1alpha1.SwitchoverOutcome) error {
	from, to := outcome.From+"-0", outcome.To+"-0"
	if failover != nil {
		return o.put(ctx, failover, &from, &to)
	}
	p := cr.Spec.ForProvider
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: cr.GetNamespace(), Name: p.Scope + "-" + members.SuffixFailover,
		Labels:      map[string]string{v1alpha1.LabelDatabase: p.Database, v1alpha1.LabelScope: p.Scope},
		Annotations: map[string]string{members.AnnotationLeader: from, members.AnnotationCandidate: to},
	}}
	if err := o.kube.Create(ctx, m); err != nil {
		return fmt.Errorf("cannot ask the members for a switchover: %w", err)
	}
	return nil
}

// put a request for the members, or take it away.
func (o *observer) put(ctx context.Context, failover *metav1.PartialObjectMetadata, from, to *string) error {
	return o.annotate(ctx, failover, map[string]*string{members.AnnotationLeader: from, members.AnnotationCandidate: to, annotationScheduled: nil})
}

// annotate an object as it was read, and no later one.
func (o *observer) annotate(ctx context.Context, m *metav1.PartialObjectMetadata, annotations map[string]*string) error {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": m.GetResourceVersion(), "annotations": annotations,
	}})
	if err != nil {
		return fmt.Errorf("cannot encode annotations: %w", err)
	}
	if err := o.kube.Patch(ctx, m, client.RawPatch(types.MergePatchType, raw)); err != nil {
		return fmt.Errorf("cannot annotate ConfigMap %q: %w", m.GetName(), err)
	}
	return nil
}
