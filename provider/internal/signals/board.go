// SPDX-License-Identifier: Apache-2.0

// Package signals has the Signals that are in force, for the observers of Algorithms and Databases.
//
// The kind Signal may come later than the kinds that read it, or never, because Crossplane creates the CRD of each kind when it is
// activated. So the observers do not watch Signals themselves. The controller of Signals opens the board once its cache is filled, and
// wakes them.
package signals

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// Longest that a Signal is in force, so that a typing error in a year holds nothing for a year.
const Longest = 7 * 24 * time.Hour

// A Target is an object that Signals are for.
type Target struct {
	types.NamespacedName

	Kind v1alpha1.TargetKind
}

// TargetOf a Signal.
func TargetOf(s *v1alpha1.Signal) Target {
	p := s.Spec.ForProvider
	return Target{Kind: p.Target.Kind, NamespacedName: types.NamespacedName{Namespace: s.GetNamespace(), Name: p.Target.Name}}
}

// A Board has the Signals that are in force. Its zero value is closed: nothing is known.
type Board struct {
	mu    sync.Mutex
	cache client.Reader
	wake  []func(Target)
}

// Open the board on a cache that holds Signals.
func (b *Board) Open(cache client.Reader) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cache = cache
}

// OnChange registers what is called when Signals to a target have changed. It must not block.
func (b *Board) OnChange(wake func(Target)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wake = append(b.wake, wake)
}

// Changed wakes the observers of a target.
func (b *Board) Changed(t Target) {
	b.mu.Lock()
	wake := slices.Clone(b.wake)
	b.mu.Unlock()
	for _, w := range wake {
		w(t)
	}
}

// Active Signals to a target at a time, sorted by name. While the board is closed they stay as they were, as far as their time lasts.
func (b *Board) Active(ctx context.Context, t Target, was []observev1alpha1.ActiveSignal, now time.Time) ([]observev1alpha1.ActiveSignal, error) {
	b.mu.Lock()
	cache := b.cache
	b.mu.Unlock()
	if cache == nil {
		return slices.DeleteFunc(slices.Clone(was), func(s observev1alpha1.ActiveSignal) bool { return !now.Before(s.Until.Time) }), nil
	}
	l := &v1alpha1.SignalList{}
	if err := cache.List(ctx, l, client.InNamespace(t.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list Signals: %w", err)
	}
	of := slices.DeleteFunc(l.Items, func(s v1alpha1.Signal) bool {
		return TargetOf(&s) != t || s.GetDeletionTimestamp() != nil || !now.Before(End(&s))
	})
	// The oldest count, so that a flood of new ones cannot displace one that holds. Tasks, which may be done already, come after all others.
	slices.SortFunc(of, func(x, y v1alpha1.Signal) int {
		return cmp.Or(task(&x)-task(&y), x.CreationTimestamp.Compare(y.CreationTimestamp.Time), strings.Compare(x.Name, y.Name))
	})
	of = of[:min(len(of), observev1alpha1.MaxSignals)]
	active := make([]observev1alpha1.ActiveSignal, 0, len(of))
	for i := range of {
		active = append(active, fact(&of[i]))
	}
	slices.SortFunc(active, func(x, y observev1alpha1.ActiveSignal) int { return strings.Compare(x.Name, y.Name) })
	if len(active) == 0 {
		return nil, nil
	}
	return active, nil
}

func task(s *v1alpha1.Signal) int {
	if s.Spec.ForProvider.Do.IsTask() {
		return 1
	}
	return 0
}

// End of a Signal.
func End(s *v1alpha1.Signal) time.Time {
	end, last := s.Spec.ForProvider.ExpiresAt.Time, s.CreationTimestamp.Add(Longest)
	if last.Before(end) {
		return last
	}
	return end
}

// fact that a Signal is.
func fact(s *v1alpha1.Signal) observev1alpha1.ActiveSignal {
	p := s.Spec.ForProvider
	f := observev1alpha1.ActiveSignal{
		Name: s.Name, UID: string(s.UID), Do: string(p.Do), Revision: p.Revision, Hook: p.Hook, Until: metav1.NewTime(End(s)),
		Cause: strings.Trim(p.Source+": "+p.Reason, ": "),
	}
	if p.Replicas != nil {
		f.Replicas = *p.Replicas
	}
	return f
}
