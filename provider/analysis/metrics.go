// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

const (
	// Defaults of the schema, for Analyses that were made before it had them.
	defaultInterval = 30 * time.Second
	defaultWindow   = 2 * time.Minute

	// lookTimeout is how long a look at Prometheus may take, all its queries together.
	lookTimeout = 25 * time.Second

	// linger is how long a reconcile waits for a look. Prometheus usually answers
	// sooner; when it does not, findings about pods must not wait for it.
	linger = 500 * time.Millisecond

	// looks are how many there may be at a time, of all Analyses.
	looks = 16

	// serverCustom is told when every query is one's own.
	serverCustom = "Custom"
)

// connect gives a client of the Prometheus of an Analysis, and the namespace whose
// series it may see.
type connect func(context.Context, *v1alpha1.Analysis) (querier, outside.Tenant, error)

// A looker looks at Prometheus for Analyses, beside the reconciles that tell what
// it saw.
type looker struct {
	connect connect
	now     func() time.Time

	// wake has an Analysis reconciled.
	wake func(types.NamespacedName)

	slots chan struct{}
}

func newLooker(c connect, now func() time.Time, wake func(types.NamespacedName)) *looker {
	return &looker{connect: c, now: now, wake: wake, slots: make(chan struct{}, looks)}
}

// A look at Prometheus.
type look struct {
	// done is closed when it is over.
	done chan struct{}

	// sample is what was seen, found what was discovered on the way. All of it is set
	// before done is closed.
	sample sample
	found  discovery

	// evidence about the canary, if there is one.
	evidence *evidence

	// ours tells that the cluster itself failed, which says nothing about Prometheus.
	ours bool
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
func (l *looker) begin(ctx context.Context, cr *v1alpha1.Analysis, found discovery, settled time.Duration) *look {
	k := &look{done: make(chan struct{})}
	cr, now := cr.DeepCopy(), l.now()

	// The reconcile that asks for it may end before.
	ctx = context.WithoutCancel(ctx)

	go func() {
		l.slots <- struct{}{}

		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		l.see(ctx, cr, found, settled, now, k)
		cancel()

		<-l.slots
		close(k.done)
		l.wake(client.ObjectKeyFromObject(cr))
	}()

	return k
}

func (l *looker) see(ctx context.Context, cr *v1alpha1.Analysis, found discovery, settled time.Duration, now time.Time, k *look) {
	a := &asker{
		namespace: cr.GetNamespace(),
		algorithm: cr.Spec.ForProvider.Algorithm,
		metrics:   *cr.Spec.ForProvider.Metrics,
		beside:    slotsOf(cr.Spec.ForProvider.Metrics.Canary),
		found:     found,
		now:       now,
	}

	if sc := a.metrics.Scaling; sc != nil && !slices.Contains(a.metrics.Slots, sc.Slot) {
		a.metrics.Slots = append(slices.Clone(a.metrics.Slots), sc.Slot)
	}

	c, tenant, err := l.connect(ctx, cr)
	if err == nil {
		a.prometheus, a.namespace = onceOf(c), tenant.Namespace
		k.sample = a.ask(ctx)
		k.evidence = a.evidence(ctx, cr, settled, k.sample.failure)
		a.account(ctx, found.accounts, &k.sample)
		k.found = a.found

		return
	}

	f := (*outside.Failure)(nil)
	k.ours = !errors.As(err, &f)

	k.sample = newSample()
	if f != nil {
		k.sample.failure = f
		a.fail(&k.sample)
		k.evidence = a.evidence(ctx, cr, settled, f)
	}
}

// measure tells what Prometheus says, and has it asked when it is time. It never
// fails: what is wrong is told.
func (o *observer) measure(ctx context.Context, cr *v1alpha1.Analysis, pods []corev1.Pod) {
	if cr.Spec.ForProvider.Metrics == nil {
		o.memory.forget(cr.GetUID())

		at := &cr.Status.AtProvider
		at.Server, at.Metrics, at.Scaling, at.SLO, at.Canary = "", nil, nil, nil, nil
		cr.Status.Conditions = slices.DeleteFunc(cr.Status.Conditions, func(c xpv2.Condition) bool { return c.Type == apis.TypeConnected })

		return
	}

	m := o.memory.of(cr.GetUID(), o.now())
	m.mu.Lock()
	defer m.mu.Unlock()

	m.watchReplicas(cr, pods, o.now())
	m.startEpoch(cr, o.now())

	asks := asksOf(cr)
	if m.look == nil && (m.asks != asks || !o.now().Before(m.lookedAt.Add(intervalOf(cr.Spec.ForProvider.Metrics)))) {
		if m.asks != asks {
			m.found = discovery{}
		}

		m.asks, m.lookedAt = asks, o.now()
		m.look = o.looker.begin(ctx, cr, m.found, m.settled(cr, o.now()))

		timer := time.NewTimer(linger)
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

	// What was asked may no longer be what is to be asked, and a cluster that fails
	// says nothing about Prometheus: what is told stays until the next look.
	if m.asks != asks || k.ours {
		return
	}

	m.found = k.found
	tellMetrics(cr, m, k.sample, pods, o.now())
	tellCanary(cr, k.evidence, pods, m.lookedAt)
}

// asksOf is everything that a look depends on.
func asksOf(cr *v1alpha1.Analysis) string {
	b, err := json.Marshal([]any{cr.Spec.ProviderConfigReference, cr.Spec.ForProvider.Algorithm, cr.Spec.ForProvider.Metrics})
	if err != nil {
		return ""
	}

	return string(b)
}

// tellMetrics into the status.
func tellMetrics(cr *v1alpha1.Analysis, m *remembered, s sample, pods []corev1.Pod, now time.Time) {
	p, at := cr.Spec.ForProvider.Metrics, &cr.Status.AtProvider

	all := make([]opinion, 0, len(p.Slots)*len(p.Checks))

	for _, slot := range p.Slots {
		ready := len(readyOf(pods, slot))

		for _, c := range p.Checks {
			here := place{slot, c.Name}

			var stands v1alpha1.Verdict
			if i := slices.IndexFunc(at.Metrics, func(o v1alpha1.MetricObservation) bool { return o.Slot == slot && o.Name == c.Name }); i >= 0 {
				stands = at.Metrics[i].Verdict
			}

			all = append(all, judge(c, here, s, ready, p, stands))
		}
	}

	at.Metrics = tell(at.Metrics, all)
	at.Server = serverOf(at.Server, p, s)
	at.SLO = tellSLO(at.SLO, p, s)
	at.Scaling = scaling(at.Scaling, cr, m, s, pods, now)

	cr.SetConditions(s.connected().WithObservedGeneration(cr.GetGeneration()))
}

// serverOf the live slot, which comes first. What is told stays while nobody knows.
func serverOf(told string, p *v1alpha1.MetricsParameters, s sample) string {
	a := &asker{metrics: *p}
	if !a.wants().others(a.own()).any() {
		return serverCustom
	}

	for _, slot := range p.Slots {
		if m := s.slots[slot]; m != nil && m.server != "" {
			return m.server
		}
	}

	if _, known := modelserver.Find(told); known {
		return told
	}

	return ""
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

func intervalOf(m *v1alpha1.MetricsParameters) time.Duration {
	if m.Interval == nil || m.Interval.Duration <= 0 {
		return defaultInterval
	}

	return m.Interval.Duration
}

func windowOf(m *v1alpha1.MetricsParameters) time.Duration {
	if m.Window == nil || m.Window.Duration <= 0 {
		return defaultWindow
	}

	return m.Window.Duration
}

// nextLook is when the next one is due, or zero when there is none.
func (o *observer) nextLook(cr *v1alpha1.Analysis) time.Time {
	if cr.Spec.ForProvider.Metrics == nil {
		return time.Time{}
	}

	return o.memory.nextLook(cr.GetUID(), intervalOf(cr.Spec.ForProvider.Metrics))
}
