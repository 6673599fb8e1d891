// SPDX-License-Identifier: Apache-2.0

package jobhistory

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/podask"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

var (
	_ managed.TypedExternalConnector[*v1alpha1.JobHistory] = &observer{}
	_ managed.TypedExternalClient[*v1alpha1.JobHistory]    = &observer{}
)

const (
	// fresh is how long an event counts. A Job tries again within ten minutes.
	fresh = 15 * time.Minute
	// absentEvery is how often to look why a pod is not made: no event of a pod says so.
	absentEvery = 30 * time.Second
)

// An observer looks at the Jobs and pods in the cache, and asks companions.
type observer struct {
	kind.Nothing[*v1alpha1.JobHistory]

	// seen holds what Setup watches, and direct reads from the API server.
	seen, direct client.Reader

	phone *podask.Phone[runner.State]
	now   func() time.Time

	mu     sync.Mutex
	writes map[types.UID]time.Time
}

func newObserver(seen, direct client.Reader, a ask, now func() time.Time) *observer {
	return &observer{seen: seen, direct: direct, phone: podask.NewPhone(a, now), now: now, writes: map[types.UID]time.Time{}}
}

// Connect has nothing to connect to yet: a companion that does not answer must not block looking at the pods.
func (o *observer) Connect(context.Context, *v1alpha1.JobHistory) (managed.TypedExternalClient[*v1alpha1.JobHistory], error) {
	return o, nil
}

// Observe the Jobs, their pods, and what companions say. A JobHistory without Jobs exists like any other.
func (o *observer) Observe(ctx context.Context, cr *v1alpha1.JobHistory) (managed.ExternalObservation, error) {
	if meta.WasDeleted(cr) {
		return managed.ExternalObservation{}, nil
	}
	v, err := o.look(ctx, cr)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	for i := range v.jobs {
		j := &v.jobs[i]
		if phase, _, _ := j.end(); phase != "" {
			continue
		}
		switch p := j.leader(); {
		case container(p).Running != nil:
			if j.state, _, err = o.phone.Call(ctx, p.UID, p, 0); err != nil {
				return managed.ExternalObservation{}, fmt.Errorf("cannot ask the companion: %w", err)
			}
		case p == nil:
			of := podhealth.Owner{Kind: "Job", Namespace: cr.GetNamespace(), Name: j.job.Name}
			// An error is none: it is only what can be said more.
			j.refused, _ = podhealth.Refused(ctx, o.direct, of, v.now.Add(-fresh))
		}
	}
	if seen := v.facts(); worth(cr.Status.AtProvider, seen, o.since(cr)) {
		cr.Status.AtProvider = seen
		o.mu.Lock()
		o.writes[cr.GetUID()] = v.now
		o.mu.Unlock()
	}
	cr.SetConditions(xpv2.Available().WithObservedGeneration(cr.GetGeneration()))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

// since the last write.
func (o *observer) since(cr *v1alpha1.JobHistory) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now().Sub(o.writes[cr.GetUID()])
}

func (o *observer) look(ctx context.Context, cr *v1alpha1.JobHistory) (*view, error) {
	var jobs batchv1.JobList
	var pods corev1.PodList
	of := []client.ListOption{
		client.InNamespace(cr.GetNamespace()),
		client.MatchingFields{byPipeline: cr.Spec.ForProvider.Pipeline},
		client.UnsafeDisableDeepCopy, // Nothing changes them.
	}
	if err := o.seen.List(ctx, &jobs, of...); err != nil {
		return nil, fmt.Errorf("cannot list Jobs of Pipeline %q: %w", cr.Spec.ForProvider.Pipeline, err)
	}
	if err := o.seen.List(ctx, &pods, of...); err != nil {
		return nil, fmt.Errorf("cannot list pods of Pipeline %q: %w", cr.Spec.ForProvider.Pipeline, err)
	}
	return newView(cr, jobs.Items, pods.Items, o.now()), nil
}

// poll is the interval after which a JobHistory is observed without an event: when the next request to a companion is due, as long as there
// is one.
func (o *observer) poll(mg resource.Managed, every time.Duration) time.Duration {
	every = kind.Poll(mg, every)
	cr, ok := mg.(*v1alpha1.JobHistory)
	if !ok {
		return every
	}
	v, err := o.look(context.Background(), cr)
	if err != nil {
		return every
	}
	for i := range v.jobs {
		j := &v.jobs[i]
		if phase, _, _ := j.end(); phase != "" {
			continue
		}
		switch p := j.leader(); {
		case container(p).Running != nil:
			every = min(every, o.phone.Next(p.UID))
		case p == nil:
			every = min(every, absentEvery)
		}
	}
	return every
}
