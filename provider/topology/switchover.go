// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

const (
	// annotationSwitchovers of <scope>-config holds the switchovers that Patroni was
	// asked for, as the JSON of outcomes. It is there as long as the Database, so that
	// no id is carried out twice when a Topology is made anew.
	annotationSwitchovers = "capstan.dev/switchovers"

	// remembered is how many ids are kept, and shown how many are told.
	remembered, shown = 64, 8

	// switchoverLimit is how long Patroni may take. The slowest that it is configured
	// for gives a lead up after 90 s.
	switchoverLimit = 2 * time.Minute

	// switchoverRefused is how long to wait before a wish that Patroni has put away
	// without another leader counts as refused. What is seen of it comes by several
	// ways.
	switchoverRefused = 15 * time.Second

	// switchoverPace is how often one looks in between.
	switchoverPace = 2 * time.Second
)

// outcomes that are written down, oldest first. What cannot be read is none.
func outcomes(annotations map[string]string) []v1alpha1.SwitchoverOutcome {
	var all []v1alpha1.SwitchoverOutcome
	if json.Unmarshal([]byte(annotations[annotationSwitchovers]), &all) != nil {
		return nil
	}

	var known []v1alpha1.SwitchoverOutcome

	for _, o := range all {
		for _, field := range []*string{&o.ID, &o.From, &o.To, &o.State} {
			*field = words.Bounded(words.OneLine(*field), maxReason)
		}

		o.Message = words.Bounded(words.OneLine(o.Message), maxMessage)

		// A list by id, or the API server would not take the status.
		if !slices.ContainsFunc(known, func(k v1alpha1.SwitchoverOutcome) bool { return k.ID == o.ID }) {
			known = append(known, o)
		}
	}

	return known[max(0, len(known)-remembered):]
}

// told outcomes: the last ones, and that of the switchover that is asked for.
func (v *view) told() []v1alpha1.SwitchoverOutcome {
	all := outcomes(v.patroni[suffixConfig])
	last := all[max(0, len(all)-shown):]

	if w := v.parameters.Switchover; w != nil {
		i := slices.IndexFunc(all, func(o v1alpha1.SwitchoverOutcome) bool { return o.ID == w.ID })
		if i >= 0 && i < len(all)-len(last) {
			return append([]v1alpha1.SwitchoverOutcome{all[i]}, last...)
		}
	}

	return last
}

// A duty is what is to be done about a switchover.
type duty int

const (
	// nothing is to be done.
	nothing duty = iota
	// await what becomes of one.
	await
	// begin the one that is asked for.
	begin
	// end one that has an outcome.
	end
)

// due is what is to be done, and the outcome to write down. It does not decide
// whether the lead should move, only what has become of it.
func due(known []v1alpha1.SwitchoverOutcome, w *v1alpha1.TopologySwitchover, leader string, failover map[string]string, now time.Time) (duty, v1alpha1.SwitchoverOutcome) {
	if i := slices.IndexFunc(known, func(o v1alpha1.SwitchoverOutcome) bool { return o.State == v1alpha1.SwitchoverAsked }); i >= 0 {
		o := known[i]
		age := now.Sub(o.At.Time)
		put := failover[annotationLeader] == "" && failover[annotationCandidate] == ""

		switch {
		case leader != "" && leader != o.From && leader == o.To:
			o.State = v1alpha1.SwitchoverDone
		case leader != "" && leader != o.From:
			o.State, o.Message = v1alpha1.SwitchoverDone, fmt.Sprintf("member %s leads instead of %s", leader, o.To)
			o.To = leader
		case leader == o.From && put && age > switchoverRefused:
			o.State = v1alpha1.SwitchoverFailed
			o.Message = fmt.Sprintf("Patroni refused it: the log of member %s tells why", o.From)
		case age > switchoverLimit:
			o.State = v1alpha1.SwitchoverFailed
			o.Message = fmt.Sprintf("no other member led within %s: see the logs of the members", switchoverLimit)
		default:
			return await, o
		}

		return end, o
	}

	if w == nil || slices.ContainsFunc(known, func(o v1alpha1.SwitchoverOutcome) bool { return o.ID == w.ID }) {
		return nothing, v1alpha1.SwitchoverOutcome{}
	}

	o := v1alpha1.SwitchoverOutcome{ID: w.ID, From: w.From, To: w.To, State: v1alpha1.SwitchoverAsked, At: metav1.NewTime(now).Rfc3339Copy()}

	switch {
	case leader == "":
		return await, o
	case leader == w.To:
		o.State, o.Message = v1alpha1.SwitchoverDone, fmt.Sprintf("member %s led already", w.To)
		return end, o
	case leader != w.From:
		o.State, o.Message = v1alpha1.SwitchoverFailed, fmt.Sprintf("member %s leads, and not %s", leader, w.From)
		return end, o
	}

	return begin, o
}

// due for a view.
func (v *view) due(leader string) (duty, v1alpha1.SwitchoverOutcome) {
	return due(outcomes(v.patroni[suffixConfig]), v.parameters.Switchover, leader, v.patroni[suffixFailover], v.now)
}

// switchOver does what is due about a switchover, by what the API server has and not
// by what was seen before. The id is written down before Patroni is asked: if
// anything happens in between it was not carried out, and is not tried again.
func (o *observer) switchOver(ctx context.Context, cr *v1alpha1.Topology) error {
	p := cr.Spec.ForProvider

	config, err := o.patroniMap(ctx, cr, suffixConfig)
	if err != nil {
		return err
	}

	if config == nil {
		return fmt.Errorf("cannot write down switchover: there is no ConfigMap %q", p.Scope+"-"+suffixConfig)
	}

	failover, err := o.patroniMap(ctx, cr, suffixFailover)
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
	case failover != nil && wishes[annotationLeader] == outcome.From+"-0" && wishes[annotationCandidate] == outcome.To+"-0":
		// Nobody may take it up later.
		err = o.put(ctx, failover, nil, nil)
	}

	o.again(client.ObjectKeyFromObject(cr), switchoverPace)

	return err
}

// patroniMap is one of Patroni's ConfigMaps, or nil.
func (o *observer) patroniMap(ctx context.Context, cr *v1alpha1.Topology, suffix string) (*metav1.PartialObjectMetadata, error) {
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

// writeDown an outcome, unless somebody else wrote in between.
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

// ask Patroni. The leader is named, so that nothing happens when it is another one.
func (o *observer) ask(ctx context.Context, cr *v1alpha1.Topology, failover *metav1.PartialObjectMetadata, outcome v1alpha1.SwitchoverOutcome) error {
	from, to := outcome.From+"-0", outcome.To+"-0"
	if failover != nil {
		return o.put(ctx, failover, &from, &to)
	}

	p := cr.Spec.ForProvider
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: cr.GetNamespace(), Name: p.Scope + "-" + suffixFailover,
		Labels:      map[string]string{v1alpha1.LabelDatabase: p.Database, v1alpha1.LabelScope: p.Scope},
		Annotations: map[string]string{annotationLeader: from, annotationCandidate: to},
	}}

	if err := o.kube.Create(ctx, m); err != nil {
		return fmt.Errorf("cannot ask Patroni for a switchover: %w", err)
	}

	return nil
}

// put a wish for Patroni, or take it away.
func (o *observer) put(ctx context.Context, failover *metav1.PartialObjectMetadata, from, to *string) error {
	return o.annotate(ctx, failover, map[string]*string{annotationLeader: from, annotationCandidate: to, annotationScheduled: nil})
}

// annotationScheduled of <scope>-failover is when Patroni is to do it.
const annotationScheduled = "scheduled_at"

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
