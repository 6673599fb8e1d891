// SPDX-License-Identifier: Apache-2.0

package modelversion

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// settle is how long after a call that would make the version it is uncertain that a search without result is the last word:
// the registry may still be at it. It is twice as long as we wait for an answer.
const settle = time.Minute

// refusals remember calls that certainly made nothing, so that they can be repeated without waiting. They are lost when the
// provider stops; then it waits.
type refusals struct {
	mu sync.Mutex

	// began is when the call began that was refused, by the UID of its ModelVersion.
	began map[types.UID]time.Time
}

func (r *refusals) remember(cr *v1alpha1.ModelVersion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.began == nil {
		r.began = map[types.UID]time.Time{}
	}
	r.began[cr.GetUID()] = meta.GetExternalCreatePending(cr)
}

func (r *refusals) forget(cr *v1alpha1.ModelVersion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.began, cr.GetUID())
}

func (r *refusals) known(cr *v1alpha1.ModelVersion) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	began, ok := r.began[cr.GetUID()]
	return ok && began.Equal(meta.GetExternalCreatePending(cr))
}

// settled is an error while a call that would make the version may still be under way.
func (e *external) settled(cr *v1alpha1.ModelVersion) error {
	began := meta.GetExternalCreatePending(cr)
	if began.IsZero() || !meta.GetExternalCreateSucceeded(cr).Before(began) ||
		e.now().Sub(began) >= settle || e.refusals.known(cr) {
		return nil
	}
	return &outside.Failure{
		Reason:  apis.ReasonUnknownAnswer,
		Message: "it is not known yet whether the registry has made the version",
		Remedy:  "nothing to do: the provider looks for a minute before it tries again",
	}
}

// refused reports whether an error of the call that makes a version says for sure that it made none: the registry, or what stands
// before it, turned it away.
func refused(err error) bool {
	if f := (*outside.Failure)(nil); errors.As(err, &f) {
		return true
	}
	if a := (*mlflow.Error)(nil); errors.As(err, &a) {
		return a.Status >= 400 && a.Status < 500 && a.Status != http.StatusRequestTimeout
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return true
	}
	f := outside.Explain(err)
	return f != nil && slices.Contains(unsent, f.Reason)
}

// unsent are reasons of requests that never reached a service.
var unsent = []xpv2.ConditionReason{
	apis.ReasonAddressRefused, apis.ReasonHostUnknown, apis.ReasonTLSFailed, apis.ReasonThrottled,
}
