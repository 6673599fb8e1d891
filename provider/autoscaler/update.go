// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// What Crossplane writes on an object that it composes. An autoscaler that an earlier version composed has them.
const (
	compositeLabel         = "crossplane.io/composite"
	resourceNameAnnotation = "crossplane.io/composition-resource-name"
)

// desired HorizontalPodAutoscaler of an Autoscaler.
func desired(cr *v1alpha1.Autoscaler) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{
		Namespace: cr.GetNamespace(), Name: cr.GetName(), Labels: maps.Clone(cr.GetLabels()),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cr, v1alpha1.AutoscalerGroupVersionKind)},
	}}
	delete(h.Labels, compositeLabel)
	if err := json.Unmarshal(cr.Spec.ForProvider.Autoscaler.Raw, &h.Spec); err != nil {
		return nil, fmt.Errorf("cannot read spec.forProvider.autoscaler: %w", err)
	}
	return h, nil
}

// kept reports whether an autoscaler is as desired. What the API server or people add to it counts for nothing.
func kept(h, want *autoscalingv2.HorizontalPodAutoscaler) (bool, error) {
	is, err := asJSON(h.Spec)
	if err != nil {
		return false, err
	}
	should, err := asJSON(want.Spec)
	if err != nil {
		return false, err
	}
	for k, v := range want.Labels {
		if h.Labels[k] != v {
			return false, nil
		}
	}
	return covers(is, should) && reflect.DeepEqual(h.OwnerReferences, want.OwnerReferences), nil
}

func asJSON(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot compare autoscalers: %w", err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("cannot compare autoscalers: %w", err)
	}
	return out, nil
}

// covers reports whether a value has everything that another one has. Lists have to be as long.
func covers(is, should any) bool {
	switch want := should.(type) {
	case map[string]any:
		have, ok := is.(map[string]any)
		for k, v := range want {
			ok = ok && covers(have[k], v)
		}
		return ok
	case []any:
		have, ok := is.([]any)
		return ok && slices.EqualFunc(have, want, covers)
	default:
		return reflect.DeepEqual(is, should)
	}
}

// Update makes the autoscaler, or changes it as it is in the API server now. One that Crossplane composed for the same Algorithm is
// taken over in one write: it is the same object before and after, and scales all the time.
func (s *scaler) Update(ctx context.Context, cr *v1alpha1.Autoscaler) (managed.ExternalUpdate, error) {
	want, err := desired(cr)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	// Its controller writes it all the time, which is no reason to report a failure.
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return s.apply(ctx, cr, want) }); err != nil {
		return managed.ExternalUpdate{}, fmt.Errorf("cannot apply HorizontalPodAutoscaler %q: %w", cr.GetName(), err)
	}
	return managed.ExternalUpdate{}, nil
}

func (s *scaler) apply(ctx context.Context, cr *v1alpha1.Autoscaler, want *autoscalingv2.HorizontalPodAutoscaler) error {
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	err := s.direct.Get(ctx, client.ObjectKeyFromObject(cr), h)
	switch {
	case kerrors.IsNotFound(err):
		return s.kube.Create(ctx, want.DeepCopy())
	case err != nil:
		return err
	case h.DeletionTimestamp != nil:
		return errors.New("it is being deleted, and is created again after that")
	case !mayTake(h, cr):
		return errors.New("one of this name is not of this Algorithm: delete it, or give the Algorithm another name")
	}
	if h.Labels == nil {
		h.Labels = map[string]string{}
	}
	maps.Copy(h.Labels, want.Labels)
	delete(h.Labels, compositeLabel)
	delete(h.Annotations, resourceNameAnnotation)
	h.OwnerReferences, h.Spec = want.OwnerReferences, want.Spec
	return s.kube.Update(ctx, h)
}

// mayTake reports whether an autoscaler is this Autoscaler's, or an earlier one's of its name, or was composed for what controls
// this Autoscaler.
func mayTake(h *autoscalingv2.HorizontalPodAutoscaler, cr *v1alpha1.Autoscaler) bool {
	owner, composite := metav1.GetControllerOf(h), metav1.GetControllerOf(cr)
	if owner == nil {
		return false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	earlier := err == nil && gv.Group == v1alpha1.GroupVersion.Group && owner.Kind == v1alpha1.AutoscalerGroupVersionKind.Kind && owner.Name == cr.GetName()
	return owner.UID == cr.GetUID() || earlier || composite != nil && owner.UID == composite.UID
}
