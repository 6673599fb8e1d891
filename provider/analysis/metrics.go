// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/autoload"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/slo"
	"github.com/capstan-dev/capstan/provider/internal/verdict"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

const (
	// defaultInterval is the default of the schema, for Analyses that were created before it had one.
	defaultInterval = 30 * time.Second
	// lookTimeout is how long a look at Prometheus may take, all its queries together.
	lookTimeout = 25 * time.Second
	// linger is how long a reconcile waits for a look. Prometheus usually answers sooner; when it does not, findings about pods
	// must not wait for it.
	linger = 500 * time.Millisecond
	// looks is how many there may be at a time, of all Analyses.
	looks = 16
	// serverCustom is reported when every query is a custom one.
	serverCustom = "Custom"
)

// connect gives a client of the Prometheus of an Analysis, and the namespace whose series it may see.
type connect func(context.Context, *v1alpha1.Analysis) (promq.Querier, outside.Tenant, error)

// A looker looks at Prometheus for Analyses, beside the reconciles that report what it saw.
type looker struct {
	connect connect
	now     func() time.Time
	// wake has an Analysis reconciled.
	wake  func(types.NamespacedName)
	slots chan struct{}
	// linger is how long a reconcile waits for a look.
	linger time.Duration
}

func newLooker(c connect, now func() time.Time, wake func(types.NamespacedName)) *looker {
	return &looker{connect: c, now: now, wake: wake, slots: make(chan struct{}, looks), linger: linger}
}

// A look at Prometheus. What it shows is set before done is closed.
type look struct {
	seen

	done chan struct{}
}

// Seen is what one look shows.
type seen struct {
	sample promq.Sample
	// trial is what is tried on the live slot, if anything is.
	trial promq.Sample
	// evidence about the canary and the start of the epoch that it is about, if there is a canary.
	evidence *promq.Evidence
	since    metav1.Time
	found    found
	// ours means that the cluster itself failed, which shows nothing about Prometheus.
	ours bool
}

// found is what a look leaves to the next one.
type found struct {
	promq.Discovery

	accounts slo.Accounts
}

func (l *look) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// begin a look. The epoch of the canary settled so long ago.
func (l *looker) begin(ctx context.Context, cr *v1alpha1.Analysis, before found, settled time.Duration) *look {
	k := &look{done: make(chan struct{})}
	cr, now := cr.DeepCopy(), l.now()
	// The reconcile that asks for it may end before.
	ctx = context.WithoutCancel(ctx)
	go func() {
		l.slots <- struct{}{}
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		k.seen = l.see(ctx, cr, before, settled, now)
		cancel()
		<-l.slots
		close(k.done)
		l.wake(client.ObjectKeyFromObject(cr))
	}()
	return k
}

func (l *looker) see(ctx context.Context, cr *v1alpha1.Analysis, before found, settled time.Duration, now time.Time) seen {
	m, canary := cr.Spec.ForProvider.Metrics, cr.Status.AtProvider.Canary
	q := promq.QuestionOf(m)
	a := &promq.Asker{Algorithm: cr.Spec.ForProvider.Algorithm, Slots: slices.Concat(q.Slots, promq.SlotsOf(m.Canary)), Found: before.Discovery, Now: now}
	var s seen
	c, tenant, err := l.connect(ctx, cr)
	if f := (*outside.Failure)(nil); err == nil {
		a.Prometheus, a.Namespace = promq.Once(c), tenant.Namespace
		s.sample = a.Ask(ctx, q)
		s.trial = a.Trial(ctx, m, s.sample.Failure)
	} else if errors.As(err, &f) {
		s.sample = promq.Unanswered(f)
		s.trial = s.sample
	} else {
		return seen{ours: true}
	}
	if m.Canary != nil && canary != nil {
		s.evidence, s.since = a.Evidence(ctx, m, settled, counted(canary, settled, now), s.sample.Failure), canary.StartedAt
	}
	if err != nil {
		return s
	}
	s.found.accounts = before.accounts
	if s.sample.Failure == nil {
		s.found.accounts = slo.Account(ctx, a, m, before.accounts)
	}
	s.found.Discovery = a.Found
	return s
}

// measure reports what Prometheus shows, and has it asked when it is time. It never fails: what is wrong is reported.
func (o *observer) measure(ctx context.Context, cr *v1alpha1.Analysis, pods []corev1.Pod) {
	p, at, now := cr.Spec.ForProvider.Metrics, &cr.Status.AtProvider, o.now()
	if p == nil {
		o.memory.forget(cr.GetUID())
		at.Server, at.UncountedFailures, at.Distribution, at.Trial, at.Metrics = "", "", "", nil, nil
		at.Scaling, at.Latency, at.SLO, at.Canary, at.IdleSince = nil, nil, nil, nil, nil
		cr.Status.Conditions = slices.DeleteFunc(cr.Status.Conditions, func(c xpv2.Condition) bool { return c.Type == apis.TypeConnected })
		return
	}
	m := o.memory.of(cr.GetUID(), now)
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.Scaling != nil {
		m.load = m.load.Watch(p.Scaling.Slot, readyOf(pods, p.Scaling.Slot), now)
	}
	m.startEpoch(cr, now)
	asks := asksOf(cr)
	if m.look == nil && (m.asks != asks || !now.Before(m.due(cr))) {
		if m.asks != asks {
			m.found = found{}
		}
		m.asks, m.lookedAt = asks, now
		about := cr.DeepCopy()
		about.Status.AtProvider.Canary = m.known(at.Canary).DeepCopy()
		m.look = o.looker.begin(ctx, about, m.found, m.settled(cr, now))
		timer := time.NewTimer(o.looker.linger)
		defer timer.Stop()
		select {
		case <-m.look.done:
		case <-timer.C:
		}
	}
	if m.look == nil || !m.look.over() {
		return
	}
	k := m.look
	m.look = nil
	// The spec may ask something else by now, and a cluster that fails shows nothing about Prometheus: what is reported stays
	// until the next look.
	if m.asks != asks || k.ours {
		return
	}
	m.found = k.found
	m.load = report(cr, m.load, k.seen, pods, now)
	m.idleSince = idleSince(m.idleSince, p, k.sample, m.lookedAt)
	at.IdleSince = reportedIdle(m.idleSince, p, now)
	m.seeCanary(cr, k.seen, pods, m.lookedAt)
}

// asksOf is everything that a look depends on.
func asksOf(cr *v1alpha1.Analysis) string {
	return textOf(cr.Spec.ProviderConfigReference, cr.Spec.ForProvider.Algorithm, cr.Spec.ForProvider.Metrics)
}

// textOf values, to compare them with later ones.
func textOf(values ...any) string {
	b, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	return string(b)
}

// report what was seen in the status, and return what was learned of the replicas.
func report(cr *v1alpha1.Analysis, load autoload.Memory, k seen, pods []corev1.Pod, now time.Time) autoload.Memory {
	p, at := cr.Spec.ForProvider.Metrics, &cr.Status.AtProvider
	at.Metrics = verdict.Steady(at.Metrics, p, k.sample, readyIn(pods))
	at.Trial = verdict.Trial(p, k.trial, readyIn(pods))
	at.Server = serverOf(at.Server, p, k.sample)
	at.UncountedFailures = promq.UncountedFailures(at.Server, p)
	at.Distribution = distributionOf(at.Distribution, p, k.found.Discovery)
	at.SLO = slo.Report(at.SLO, p.SLO, k.sample.Failure, k.found.accounts)
	at.Latency = autoload.Latency(cr.GetNamespace(), cr.Spec.ForProvider.Algorithm, p)
	in := autoload.Look{
		Namespace: cr.GetNamespace(), Algorithm: cr.Spec.ForProvider.Algorithm, Metrics: p, Sample: k.sample, Reported: at.Scaling, Now: now,
	}
	if p.Scaling != nil {
		in.Ready = readyOf(pods, p.Scaling.Slot)
	}
	load, at.Scaling = load.Learn(in)
	// Once: a condition that is set to another value and back has changed.
	c := outside.Answered()
	switch {
	case k.sample.Failure != nil:
		c = outside.Failed(k.sample.Failure)
	case k.evidence != nil && k.evidence.Failure != nil:
		c = outside.Failed(k.evidence.Failure)
	}
	cr.SetConditions(c.WithObservedGeneration(cr.GetGeneration()))
	return load
}

// serverOf the live slot, which comes first. What is reported stays while it is unknown.
func serverOf(reported string, p *v1alpha1.MetricsParameters, s promq.Sample) string {
	if !promq.QuestionOf(p).BuiltIn() {
		return serverCustom
	}
	for _, slot := range p.Slots {
		if server := s.Of(slot).Server; server != "" {
			return server
		}
	}
	if _, known := modelserver.Find(reported); known {
		return reported
	}
	return ""
}

// distributionOf the live slot, which comes first. What is reported stays while it is unknown.
func distributionOf(reported string, p *v1alpha1.MetricsParameters, found promq.Discovery) string {
	for _, slot := range p.Slots[:min(len(p.Slots), 1)] {
		if name, known := found.Distributions[slot]; known {
			return name
		}
	}
	return reported
}

// readyOf are the pods of a slot that are ready.
func readyOf(pods []corev1.Pod, slot string) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range pods {
		if p := &pods[i]; p.GetLabels()[v1alpha1.LabelSlot] == slot && !podhealth.Leaving(p) && podhealth.Is(p, corev1.PodReady) {
			out = append(out, p)
		}
	}
	return out
}

// readyIn counts the ready pods of a slot.
func readyIn(pods []corev1.Pod) func(slot string) int {
	return func(slot string) int { return len(readyOf(pods, slot)) }
}

func intervalOf(m *v1alpha1.MetricsParameters) time.Duration {
	return promq.Positive(m.Interval, defaultInterval)
}

// nextLook is when the next one is due, or zero when there is none.
func (o *observer) nextLook(cr *v1alpha1.Analysis) time.Time {
	if cr.Spec.ForProvider.Metrics == nil {
		return time.Time{}
	}
	return o.memory.nextLook(cr)
}
