// SPDX-License-Identifier: Apache-2.0

package podhealth

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// podName in an event of an owner whose pods have random names.
var podName = regexp.MustCompile(`^(Error creating: )?pods "[^"]*"`)

// An Owner makes pods.
type Owner struct {
	Kind, Namespace, Name string

	// Pod is the name of the pod that it makes, or empty when its pods have other names each time.
	Pod string
}

// Refused says why the owner has no pod: nothing but an event of it does. It is nil when no event since a time says so. The reader must
// read from the API server.
func Refused(ctx context.Context, kube client.Reader, of Owner, since time.Time) (*Hindrance, error) {
	l := &corev1.EventList{}
	if err := kube.List(ctx, l, client.InNamespace(of.Namespace), client.MatchingFieldsSelector{
		Selector: fields.SelectorFromSet(fields.Set{
			"involvedObject.kind": of.Kind, "involvedObject.name": of.Name, "reason": "FailedCreate",
		}),
	}); err != nil {
		return nil, fmt.Errorf("cannot list events of %s %q: %w", of.Kind, of.Name, err)
	}
	var last *corev1.Event
	for i := range l.Items {
		if e := &l.Items[i]; !seenAt(e).Before(since) && (last == nil || seenAt(e).After(seenAt(last))) {
			last = e
		}
	}
	if last == nil {
		return nil, nil //nolint:nilnil // There is none.
	}
	return refused(last.Message, of), nil
}

// refused is why a pod was not made.
func refused(said string, of Owner) *Hindrance {
	if _, after, ok := strings.Cut(said, "failed error: "); ok {
		said = after
	}
	if of.Pod == "" { // Events of Jobs say: Error creating: pods "NAME-0-x7k2p" is forbidden: …
		said = podName.ReplaceAllString(said, "the pod")
	}
	h := &Hindrance{
		Reason: v1alpha1.ReasonPodsRefused,
		What:   "the pod is refused",
		Detail: words.Steady(said, of.Pod),
		Remedy: "see the events of the " + of.Kind + ", and what the namespace allows",
	}
	if strings.Contains(said, "exceeded quota") {
		h.Reason = v1alpha1.ReasonQuotaExceeded
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
