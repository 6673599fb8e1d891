// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// absent says why members that should be there have no pod: nothing but an event of their StatefulSet does. None is
// reported while none is there, and once the members are to go.
func (o *observer) absent(ctx context.Context, cr *v1alpha1.Topology, v *view) map[string]*podhealth.Hindrance {
	out := map[string]*podhealth.Hindrance{}
	if cr.DeletionTimestamp != nil || v.parameters.Hibernated {
		return out
	}
	for _, name := range v.parameters.Members {
		if v.pod(name) != nil {
			continue
		}
		l := &corev1.EventList{}
		if err := o.direct.List(ctx, l, client.InNamespace(cr.GetNamespace()), client.MatchingFieldsSelector{
			Selector: fields.SelectorFromSet(fields.Set{
				"involvedObject.kind": "StatefulSet", "involvedObject.name": name, "reason": "FailedCreate",
			}),
		}); err != nil {
			continue // It is only what can be said more.
		}
		if e := newest(l.Items); e != nil {
			out[name] = refused(e.Message, name+"-0")
		}
	}
	return out
}

func newest(all []corev1.Event) *corev1.Event {
	var last *corev1.Event
	for i := range all {
		if last == nil || seenAt(&all[i]).After(seenAt(last)) {
			last = &all[i]
		}
	}
	return last
}

// refused is why a pod was not made.
func refused(message, pod string) *podhealth.Hindrance {
	said := message
	if _, after, ok := strings.Cut(said, "failed error: "); ok {
		said = after
	}
	h := &podhealth.Hindrance{
		Reason: apis.ReasonPodsRefused,
		What:   "the pod is refused",
		Detail: words.Steady(said, pod),
		Remedy: "see the events of the StatefulSet, and what the namespace allows",
	}
	if strings.Contains(said, "exceeded quota") {
		h.Reason = apis.ReasonQuotaExceeded
		h.What = "the quota of the namespace has no room for the pod"
		h.Remedy = "raise the quota, or ask for less"
	}
	return h
}

// seenAt is when an event was seen last, in whichever of its fields says so.
func seenAt(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	default:
		return e.EventTime.Time
	}
}
