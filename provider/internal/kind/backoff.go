// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"cmp"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Waits after failures in a row, unless a config says otherwise. The longest is short enough that a service that was down is in
// use again half a minute after it is back, and long enough that a thousand objects cause 33 requests a second.
const (
	firstWait   = time.Second
	longestWait = 30 * time.Second
)

// A backoff is the rate limiter of a controller's queue: the wait doubles with each failure in a row. workqueue's limiters have
// one pair of waits for all objects; here each object has the waits of its config.
type backoff struct {
	mu      sync.Mutex
	failing map[reconcile.Request]failing
}

type failing struct {
	first, longest time.Duration
	failures       int
}

func newBackoff() *backoff { return &backoff{failing: map[reconcile.Request]failing{}} }

// set the waits of a request, until it is forgotten. A field that is nil means the usual wait, as does a nil retry.
func (b *backoff) set(req reconcile.Request, retry *v1alpha1.Retry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := failing{first: firstWait, longest: longestWait, failures: b.failing[req].failures}
	if retry != nil {
		f.first = cmp.Or(retry.BaseDelay, &metav1.Duration{Duration: firstWait}).Duration
		f.longest = cmp.Or(retry.MaxDelay, &metav1.Duration{Duration: longestWait}).Duration
	}
	b.failing[req] = f
}

// When to try a request again that has just failed.
func (b *backoff) When(req reconcile.Request) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.failing[req]
	if !ok {
		f = failing{first: firstWait, longest: longestWait}
	}
	wait := f.first
	for range f.failures {
		if wait >= f.longest {
			break
		}
		wait *= 2
	}
	f.failures++
	b.failing[req] = f
	return min(wait, f.longest)
}

// Forget the failures of a request.
func (b *backoff) Forget(req reconcile.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failing, req)
}

// NumRequeues is how often a request has failed in a row.
func (b *backoff) NumRequeues(req reconcile.Request) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failing[req].failures
}
