// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
)

const (
	// leastPeriod is how much time must have passed since an epoch settled before it is
	// looked at: an increase takes two scrapes.
	leastPeriod = 20 * time.Second

	// mostPeriod is how far back an epoch is looked at: the longest window there is.
	mostPeriod = 6 * time.Hour
)

// Evidence about a canary is what was seen of it in one look.
type evidence struct {
	// since is when the epoch began that it is about.
	since metav1.Time

	// settling tells that nothing was asked, because nothing would count yet.
	settling bool

	// What was seen in the recent window and in the whole period since the epoch settled.
	recent, whole  sample
	window, period time.Duration

	// arms of an experiment, or nil when there is none or they were not counted yet.
	arms *arms

	// failure that kept Prometheus as a whole from answering, or nil.
	failure *outside.Failure
}

// evidence about the canary, if there is one. When Prometheus did not answer before, it
// is not asked any more.
func (a *asker) evidence(ctx context.Context, cr *v1alpha1.Analysis, settled time.Duration, failure *outside.Failure) *evidence {
	if a.metrics.Canary == nil || cr.Status.AtProvider.Canary == nil {
		return nil
	}

	e := evidence{failure: failure, settling: settled < leastPeriod}
	if failure == nil && !e.settling {
		e = a.gather(ctx, settled)
	}

	e.since = cr.Status.AtProvider.Canary.StartedAt

	return &e
}

// gather evidence about the canary of an epoch that settled so long ago: by the same
// queries as everything else, over the recent window and over the whole period. Values
// of queries of one's own have no confidence that more time would add to, so that they
// are asked over the recent window only.
func (a *asker) gather(ctx context.Context, settled time.Duration) evidence {
	of, e := a.metrics.Canary, evidence{period: min(settled.Truncate(time.Second), mostPeriod)}
	e.window = min(windowOf(&a.metrics), e.period)

	e.recent = a.over(ctx, e.window, of.Checks)
	if e.failure = e.recent.failure; e.failure != nil {
		return e
	}

	e.whole = e.recent

	if e.window < e.period {
		counted := slices.DeleteFunc(slices.Clone(of.Checks), func(c v1alpha1.Check) bool { return c.Kind == v1alpha1.CheckQuery })
		e.whole = a.over(ctx, e.period, counted)
		e.failure = e.whole.failure
	}

	if e.failure == nil {
		e.arms = a.compare(ctx, settled)
	}

	return e
}

// over a window is what checks of the canary and of its baseline see.
func (a *asker) over(ctx context.Context, window time.Duration, checks []v1alpha1.Check) sample {
	b := *a
	b.trial, b.beside = a.metrics.Canary, slices.Concat(a.metrics.Slots, a.beside)
	b.metrics = v1alpha1.MetricsParameters{
		Window: &metav1.Duration{Duration: window}, Slots: slotsOf(a.metrics.Canary), Queries: a.metrics.Queries, Checks: checks,
	}

	s := b.ask(ctx)
	a.found = b.found

	return s
}

// slotsOf a canary and of its baseline, if it has one.
func slotsOf(c *v1alpha1.CanaryParameters) []string {
	if c == nil {
		return nil
	}

	all := slices.DeleteFunc([]string{c.Slot, c.Baseline}, func(s string) bool { return s == "" })
	slices.Sort(all)

	return slices.Compact(all)
}

// Once asks what is the same only once a look: a canary is asked about over the window
// that everything is about.
type once struct {
	querier

	mu      sync.Mutex
	answers map[string]answer
}

// An answer of Prometheus.
type answer struct {
	value model.Value
	err   error
}

func onceOf(q querier) *once { return &once{querier: q, answers: map[string]answer{}} }

// Query asks unless that was asked before.
func (o *once) Query(ctx context.Context, pods prometheus.Pods, query string) (model.Value, error) {
	return o.QueryAt(ctx, pods, query, time.Time{})
}

// QueryAt asks unless that was asked before.
func (o *once) QueryAt(ctx context.Context, pods prometheus.Pods, query string, at time.Time) (model.Value, error) {
	slots := slices.Sorted(slices.Values(pods.Slots))
	key := fmt.Sprintf("%q %t %q %d", strings.Join(slots, "|"), pods.AnySlot, query, at.UnixNano())

	o.mu.Lock()
	known, ok := o.answers[key]
	o.mu.Unlock()

	if ok {
		return known.value, known.err
	}

	v, err := o.querier.QueryAt(ctx, pods, query, at)

	o.mu.Lock()
	defer o.mu.Unlock()

	o.answers[key] = answer{v, err}

	return v, err
}
