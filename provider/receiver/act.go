// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/signals"
)

// usualSpan is how long a Signal lasts unless its rule says otherwise: the schema has the same default.
const usualSpan = 5 * time.Hour

// act on an occurrence: what each rule that matches makes of it. It returns the names of the Signals. A rule that fails blocks no other.
func (s *Server) act(ctx context.Context, cr *v1alpha1.Receiver, h occurrence) (names []string, failures []error) {
	for _, rule := range cr.Spec.ForProvider.Rules {
		if !matches(rule, h.values) {
			continue
		}
		name, err := s.apply(ctx, cr, rule, h)
		switch {
		case err != nil:
			failures = append(failures, err)
		case name != "":
			names = append(names, name)
		}
	}
	return names, failures
}

func matches(rule v1alpha1.ReceiverRule, values map[string]string) bool {
	for k, v := range rule.Match {
		if values[k] != v {
			return false
		}
	}
	return len(rule.Match) > 0
}

// isLasting reports whether an act is in force for a time. The others are done once.
func isLasting(a v1alpha1.Act) bool { return a == v1alpha1.ActHold || a == v1alpha1.ActMinReplicas }

// apply a rule.
func (s *Server) apply(ctx context.Context, cr *v1alpha1.Receiver, rule v1alpha1.ReceiverRule, h occurrence) (string, error) {
	of := h.occasion
	if isLasting(rule.Do) {
		of = h.key
	}
	name := nameOf(cr, rule, of)
	signal := &v1alpha1.Signal{}
	err := s.Cache.Get(ctx, types.NamespacedName{Namespace: cr.GetNamespace(), Name: name}, signal)
	found := err == nil
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("cannot get Signal %q: %w", name, err)
	}
	now, span := seconds(s.Now()), usualSpan
	if rule.For != nil {
		span = rule.For.Duration
	}
	switch {
	case h.resolved && (!found || !isLasting(rule.Do)):
		return "", nil
	case h.resolved:
		return name, s.end(ctx, signal, now)
	case found && !extends(rule.Do, h, signal, now):
		return name, nil
	case found && isLasting(rule.Do) && now.Sub(signal.GetCreationTimestamp().Time) >= signals.Longest:
		// It cannot be extended any more, and another one takes its place.
		uid := signal.GetUID()
		if err := s.Kube.Delete(ctx, signal, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("cannot delete Signal %q: %w", name, err)
		}
	case found:
		return name, s.extend(ctx, signal, rule, now, span)
	}
	return s.create(ctx, cr, rule, h, name, now.Add(span))
}

// extends reports whether a repetition makes a Signal last longer. The Signal of a task does as long as the alert fires: it shows that the task
// was done.
func extends(do v1alpha1.Act, h occurrence, signal *v1alpha1.Signal, now time.Time) bool {
	return !h.isEvent && (isLasting(do) || do.IsTask() && now.Before(signals.End(signal)))
}

// nameOf the Signal that a rule makes of something: another one for another Receiver, so that none touches what others made.
func nameOf(cr *v1alpha1.Receiver, rule v1alpha1.ReceiverRule, of string) string {
	sum := sha256.Sum256([]byte(string(cr.GetUID()) + "\x00" + rule.Name + "\x00" + string(rule.Do) + rule.Hook + "\x00" + rule.Target.Name + "\x00" + of))
	return rule.Name + "-" + hex.EncodeToString(sum[:])[:12]
}

// create a Signal. What was created meanwhile by another request is the same.
func (s *Server) create(ctx context.Context, cr *v1alpha1.Receiver, rule v1alpha1.ReceiverRule, h occurrence, name string, until time.Time) (string, error) {
	signal := &v1alpha1.Signal{ObjectMeta: metav1.ObjectMeta{
		Namespace: cr.GetNamespace(), Name: name,
		Labels: map[string]string{v1alpha1.LabelReceiver: cr.GetName(), v1alpha1.LabelRule: rule.Name},
	}}
	p := &signal.Spec.ForProvider
	*p = v1alpha1.SignalParameters{
		Target: rule.Target, Do: rule.Do, Replicas: rule.Replicas, Hook: rule.Hook, ExpiresAt: metav1.NewTime(until),
		Source: "receiver " + cr.GetName(), Reason: shortened(h.reason),
	}
	if rule.Do == v1alpha1.ActAbort {
		revision, err := s.underTest(ctx, cr.GetNamespace(), rule.Target.Name)
		if err != nil || revision == "" {
			return "", err // Nothing is under test.
		}
		p.Revision = revision
	}
	if err := s.checkRoom(ctx, cr); err != nil {
		return "", err
	}
	if err := s.Kube.Create(ctx, signal); err != nil && !kerrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("cannot create Signal %q: %w", name, err)
	}
	return name, nil
}

// maxSignals of a Receiver that exist at a time. To one object 16 count.
const maxSignals = 256

// errFull when a Receiver has as many Signals as it may.
var errFull = fmt.Errorf("this Receiver has %d Signals, which is the most: repeat the request when some have ended", maxSignals)

// checkRoom for another Signal of a Receiver: a storm of alerts must not fill the API server. The cache may be a few behind.
func (s *Server) checkRoom(ctx context.Context, cr *v1alpha1.Receiver) error {
	l := &v1alpha1.SignalList{}
	if err := s.Cache.List(ctx, l, client.InNamespace(cr.GetNamespace()), client.MatchingLabels{v1alpha1.LabelReceiver: cr.GetName()},
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list Signals: %w", err)
	}
	if len(l.Items) >= maxSignals {
		return errFull
	}
	return nil
}

// extend a Signal that lasts. It is written only when half of its time is over, or its rule was edited: alerts that fire are repeated.
func (s *Server) extend(ctx context.Context, signal *v1alpha1.Signal, rule v1alpha1.ReceiverRule, now time.Time, span time.Duration) error {
	p, was := &signal.Spec.ForProvider, signal.DeepCopy()
	if left := p.ExpiresAt.Sub(now); left < span/2 || left > span {
		p.ExpiresAt = metav1.NewTime(now.Add(span))
	}
	p.Replicas = rule.Replicas
	return s.patch(ctx, signal, was)
}

// end a Signal now, if it has not ended.
func (s *Server) end(ctx context.Context, signal *v1alpha1.Signal, now time.Time) error {
	if !signal.Spec.ForProvider.ExpiresAt.After(now) {
		return nil
	}
	was := signal.DeepCopy()
	signal.Spec.ForProvider.ExpiresAt = metav1.NewTime(now)
	return s.patch(ctx, signal, was)
}

func (s *Server) patch(ctx context.Context, signal, was *v1alpha1.Signal) error {
	if signal.Spec.ForProvider.ExpiresAt.Equal(&was.Spec.ForProvider.ExpiresAt) && equal(signal.Spec.ForProvider.Replicas, was.Spec.ForProvider.Replicas) {
		return nil
	}
	if err := s.Kube.Patch(ctx, signal, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot update Signal %q: %w", signal.GetName(), err)
	}
	return nil
}

func equal(a, b *int32) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// candidateSlot is the slot whose revision is under test, or empty. Before evidence is gathered, it is the second slot that is measured.
func candidateSlot(m *observev1alpha1.MetricsParameters) string {
	switch {
	case m == nil:
		return ""
	case m.Canary != nil:
		return m.Canary.Slot
	case len(m.Slots) > 1:
		return m.Slots[1]
	default:
		return ""
	}
}

// underTest is the revision of an Algorithm that gets a share of the requests or waits for it, or empty.
func (s *Server) underTest(ctx context.Context, namespace, algorithm string) (string, error) {
	a := &observev1alpha1.Analysis{}
	if err := s.Cache.Get(ctx, types.NamespacedName{Namespace: namespace, Name: algorithm}, a); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	slot := candidateSlot(a.Spec.ForProvider.Metrics)
	if slot == "" {
		return "", nil
	}
	pods := &corev1.PodList{}
	if err := s.Cache.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{
		observev1alpha1.LabelAlgorithm: algorithm, observev1alpha1.LabelSlot: slot,
	}); err != nil {
		return "", fmt.Errorf("cannot list the pods of Algorithm %q: %w", algorithm, err)
	}
	// For a moment there may be pods of an earlier revision, which end.
	slices.SortFunc(pods.Items, func(x, y corev1.Pod) int { return y.CreationTimestamp.Compare(x.CreationTimestamp.Time) })
	for _, p := range pods.Items {
		if r := p.GetAnnotations()[observev1alpha1.AnnotationRevision]; r != "" && p.DeletionTimestamp == nil {
			return r, nil
		}
	}
	return "", nil
}

// maxReason of a Signal, in bytes.
const maxReason = 256

// shortened text of a sender, in one line of valid UTF-8 without control characters.
func shortened(s string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	s = strings.Join(strings.Fields(visible), " ")
	if len(s) <= maxReason {
		return s
	}
	s = s[:maxReason-len("…")]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}
