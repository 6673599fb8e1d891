// SPDX-License-Identifier: Apache-2.0

package flinkjob

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/podask"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

const (
	maxCount   = 1 << 30
	maxPath    = 1024
	maxMessage = 1024
	// usual is how old what the status has of checkpoints may be, while nothing else changes.
	usual = 10 * time.Minute
)

var (
	_ managed.TypedExternalConnector[*v1alpha1.FlinkJob] = &observer{}
	_ managed.TypedExternalClient[*v1alpha1.FlinkJob]    = &observer{}
)

// An observer looks at the pods of streams in the cache, and asks their JobManagers.
type observer struct {
	kind.Nothing[*v1alpha1.FlinkJob]

	seen   client.Reader
	phone  *podask.Phone[flink.State]
	counts *counts
	now    func() time.Time
}

// Connect has nothing to connect to yet: a companion that does not answer must not block looking at the pods.
func (o *observer) Connect(context.Context, *v1alpha1.FlinkJob) (managed.TypedExternalClient[*v1alpha1.FlinkJob], error) {
	return o, nil
}

// Observe the pods, and what the companion of the JobManager says. A FlinkJob without pods exists like any other.
func (o *observer) Observe(ctx context.Context, cr *v1alpha1.FlinkJob) (managed.ExternalObservation, error) {
	if meta.WasDeleted(cr) {
		return managed.ExternalObservation{}, nil
	}
	l := &corev1.PodList{}
	if err := o.seen.List(ctx, l, client.InNamespace(cr.GetNamespace()),
		client.MatchingLabels{runner.LabelPipeline: cr.Spec.ForProvider.Pipeline}, client.UnsafeDisableDeepCopy); err != nil {
		return managed.ExternalObservation{}, fmt.Errorf("cannot list pods of Pipeline %q: %w", cr.Spec.ForProvider.Pipeline, err)
	}
	seen := facts{was: cr.Status.AtProvider, pods: l.Items, now: o.now().UTC().Truncate(time.Second)}
	if p := seen.jobManager(); p != nil {
		var err error
		if seen.state, seen.silent, err = o.phone.Call(ctx, cr.GetUID(), p, 0); err != nil {
			return managed.ExternalObservation{}, fmt.Errorf("cannot ask the JobManager: %w", err)
		}
	}
	if is := seen.observation(); worth(cr.Status.AtProvider, is) {
		cr.Status.AtProvider = is
	}
	cr.SetConditions(xpv2.Available().WithObservedGeneration(cr.GetGeneration()))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

// poll is the interval after which a FlinkJob is observed without an event.
func (o *observer) poll(mg resource.Managed, every time.Duration) time.Duration {
	return min(kind.Poll(mg, every), askEvery)
}

// facts that an observation is made of.
type facts struct {
	was    v1alpha1.FlinkJobObservation
	pods   []corev1.Pod
	state  *flink.State
	silent string
	now    time.Time
}

// jobManager is its pod, if its container runs: the newest, should there be two.
func (f *facts) jobManager() *corev1.Pod {
	var newest *corev1.Pod
	for i := range f.pods {
		p := &f.pods[i]
		if p.GetLabels()[flink.LabelRole] == flink.RoleJobManager && runs(p) && (newest == nil || newest.CreationTimestamp.Before(&p.CreationTimestamp)) {
			newest = p
		}
	}
	return newest
}

func runs(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == runner.Container && s.State.Running != nil })
}

// observation of all facts. What is known stays while there is no JobManager to ask.
func (f *facts) observation() v1alpha1.FlinkJobObservation {
	out := *f.was.DeepCopy()
	out.Pods, out.Silent = f.blocked(), ""
	switch {
	case f.state != nil:
		f.take(&out)
	case f.jobManager() == nil && out.Revision > 0:
		out.Phase, out.RunningSince, out.TaskManagers = goneAfter(out.Phase), nil, 0
	case f.silent != "":
		out.Silent = f.silent
	case f.jobManager() != nil:
		out.Silent = f.was.Silent // Too few have asked in vain since the provider began.
	}
	return out
}

// goneAfter is the phase of a stream whose JobManager is not there. One that has ended does not begin again.
func goneAfter(phase string) string {
	if phase == string(flink.PhaseFinished) || phase == string(flink.PhaseCanceled) {
		return phase
	}
	return string(flink.PhaseStopped)
}

// take over what a companion says.
func (f *facts) take(out *v1alpha1.FlinkJobObservation) {
	s := f.state
	revision := int32(s.Revision) //nolint:gosec // It is bounded.
	fresh := v1alpha1.FlinkJobObservation{
		Revision: revision, Phase: string(s.Phase), Pods: out.Pods, From: saved(s.From, f.now), Savepoint: saved(s.Savepoint, f.now),
		CheckpointFault: text(s.CheckpointFault), Restarts: count(s.Restarts), Parallelism: count(s.Parallelism), TaskManagers: count(s.TaskManagers),
		Message: text(s.Message),
	}
	if s.RunningSince != nil {
		at := past(*s.RunningSince, f.now)
		fresh.RunningSince = &at
	}
	if c := s.Checkpoint; c != nil {
		fresh.Checkpoint = &v1alpha1.FlinkJobCheckpoint{ID: max(c.ID, 0), At: past(c.At, f.now), Bytes: max(c.Bytes, 0), Millis: max(c.Millis, 0)}
	}
	if s.LastStop != nil && s.LastStop.Savepoint == nil {
		fresh.SavepointError = text(s.LastStop.Error)
	}
	if s.Fault != nil {
		fresh.Fault = &v1alpha1.FlinkJobFault{At: past(s.Fault.At, f.now), Message: text(s.Fault.Message)}
	}
	*out = fresh
}

func saved(s *flink.Saved, now time.Time) *v1alpha1.FlinkJobState {
	// A part of a path would name something else.
	if s == nil || len(s.Path) > maxPath || words.OneLine(s.Path) != s.Path {
		return nil
	}
	return &v1alpha1.FlinkJobState{Path: s.Path, ID: max(s.ID, 0), At: past(s.At, now)}
}

// past is a time that the API can hold: in whole seconds, after 1970 and not in the future.
func past(t, now time.Time) metav1.Time {
	if t.After(now) || t.Before(time.Unix(0, 0)) {
		t = now
	}
	return metav1.NewTime(t.UTC().Truncate(time.Second))
}

func count(n int) int32 { return int32(min(max(n, 0), maxCount)) } //nolint:gosec // It is bounded.

// text of a tenant, bounded and on one line.
func text(s string) string {
	var lines []string
	for l := range strings.Lines(words.Bounded(s, words.MaxHeard)) {
		if l = words.OneLine(l); l != "" {
			lines = append(lines, l)
		}
	}
	return words.Bounded(strings.Join(lines, " / "), maxMessage)
}

// worth reports whether an observation is worth a write: a fact has changed, or ten minutes of checkpoints passed. An hour without a fault makes
// six writes.
func worth(was, is v1alpha1.FlinkJobObservation) bool {
	a, b := *was.DeepCopy(), *is.DeepCopy()
	first := (a.Checkpoint == nil) != (b.Checkpoint == nil)
	a.Checkpoint, b.Checkpoint = nil, nil
	if first || !equality.Semantic.DeepEqual(a, b) {
		return true
	}
	return was.Checkpoint != nil && is.Checkpoint.At.Sub(was.Checkpoint.At.Time) >= usual
}

// blocked says what blocks pods, the JobManager's first; nil when nothing does. It holds no name of a pod, no time and no count, so that it stays
// the same as long as the cause does.
func (f *facts) blocked() *v1alpha1.RunPods {
	sorted := slices.Clone(f.pods)
	slices.SortFunc(sorted, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Labels[flink.LabelRole], b.Labels[flink.LabelRole]), cmp.Compare(a.Name, b.Name))
	})
	for i := range sorted {
		if p := &sorted[i]; !podhealth.Leaving(p) {
			if h := hindrance(p); h != nil {
				return &v1alpha1.RunPods{Reason: string(h.Reason), Message: h.Message()}
			}
		}
	}
	return nil
}
