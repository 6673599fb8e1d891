// SPDX-License-Identifier: Apache-2.0

// Package receiver takes alerts and events from outside the cluster, and makes Signals of the ones that the rules of a Receiver name. It does
// nothing else: a request whose sender holds the key of a Receiver can at most create, extend and end Signals of its rules.
package receiver

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/events/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

// Setup returns what adds a controller of Receivers to a manager, whose client must read Secrets from the API server. on reports whether
// the server of this process receives anything.
func Setup(on bool) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		return kind.Setup(mgr, o, v1alpha1.ReceiverGroupVersionKind, []managed.ReconcilerOption{
			kind.Connector(v1alpha1.ReceiverGroupVersionKind, &watcher{kube: mgr.GetClient(), on: on}),
			managed.WithInitializers(),
			kind.NoFinalizer(),
		})
	}
}

// Reasons of the condition Ready of a Receiver that is not.
const (
	// ReasonOff: the platform has not switched receivers on.
	ReasonOff xpv2.ConditionReason = "ReceiversOff"
	// ReasonSecret: the Secret is missing, or has no key that can be used.
	ReasonSecret xpv2.ConditionReason = "SecretUnusable"
)

// A watcher reports whether requests to a Receiver can be answered.
type watcher struct {
	kind.Nothing[*v1alpha1.Receiver]

	kube client.Client
	on   bool
}

// Connect has nothing to connect to.
func (w *watcher) Connect(context.Context, *v1alpha1.Receiver) (managed.TypedExternalClient[*v1alpha1.Receiver], error) {
	return w, nil
}

// Observe the Secret and the newest Signal.
func (w *watcher) Observe(ctx context.Context, cr *v1alpha1.Receiver) (managed.ExternalObservation, error) {
	told := xpv2.Available()
	_, unusable, err := readKeys(ctx, w.kube, cr)
	switch {
	case err != nil:
		return managed.ExternalObservation{}, err
	case !w.on:
		told = not(ReasonOff, "the platform receives nothing: the provider runs with an empty flag --events-address, see docs/signals.md")
	case unusable != "":
		told = not(ReasonSecret, unusable)
	}
	cr.SetConditions(told.WithObservedGeneration(cr.GetGeneration()))
	cr.Status.AtProvider.Path = pathOf(client.ObjectKeyFromObject(cr))
	cr.Status.AtProvider.LastSignal, err = w.last(ctx, cr)
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, err
}

// last Signal that the Receiver made and that still exists.
func (w *watcher) last(ctx context.Context, cr *v1alpha1.Receiver) (*v1alpha1.ReceivedSignal, error) {
	l := &v1alpha1.SignalList{}
	if err := w.kube.List(ctx, l, client.InNamespace(cr.GetNamespace()), client.MatchingLabels{v1alpha1.LabelReceiver: cr.GetName()}); err != nil {
		return nil, fmt.Errorf("cannot list Signals: %w", err)
	}
	var last *v1alpha1.ReceivedSignal
	for _, s := range l.Items {
		if last == nil || last.At.Before(&s.CreationTimestamp) || last.At.Equal(&s.CreationTimestamp) && s.Name > last.Name {
			last = &v1alpha1.ReceivedSignal{Name: s.Name, At: s.CreationTimestamp}
		}
	}
	return last, nil
}

func not(reason xpv2.ConditionReason, message string) xpv2.Condition {
	return xpv2.Condition{
		Type: xpv2.TypeReady, Status: corev1.ConditionFalse, LastTransitionTime: xpv2.Available().LastTransitionTime, Reason: reason, Message: message,
	}
}

// pathOf the requests to a Receiver.
func pathOf(n types.NamespacedName) string { return "/v1/" + n.Namespace + "/" + n.Name }

// leastKey is the least length of a token or key, in bytes.
const leastKey = 16

// keys of a Receiver. Senders use one of them.
type keys struct{ token, signing string }

// readKeys of a Receiver, or why they cannot be used.
func readKeys(ctx context.Context, kube client.Reader, cr *v1alpha1.Receiver) (k keys, unusable string, err error) {
	name, s := cr.Spec.ForProvider.SecretName, &corev1.Secret{}
	err = kube.Get(ctx, types.NamespacedName{Namespace: cr.GetNamespace(), Name: name}, s)
	switch {
	case kerrors.IsNotFound(err):
		return keys{}, fmt.Sprintf("Secret %q does not exist: create it with the key token or signingKey", name), nil
	case err != nil:
		return keys{}, "", fmt.Errorf("cannot get Secret %q: %w", name, err)
	}
	k = keys{token: trimmed(s.Data[v1alpha1.KeyToken]), signing: trimmed(s.Data[v1alpha1.KeySigning])}
	switch {
	case k.token == "" && k.signing == "":
		return keys{}, fmt.Sprintf("Secret %q has neither the key token nor signingKey: add one", name), nil
	case k.token != "" && len(k.token) < leastKey, k.signing != "" && len(k.signing) < leastKey:
		return keys{}, fmt.Sprintf("Secret %q has a key shorter than %d characters: use a longer one", name, leastKey), nil
	}
	return k, "", nil
}

// seconds is a time in whole seconds, as the API server keeps it.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
