// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

const (
	// fresh is how long an event counts. A Job tries again within ten minutes.
	fresh = 15 * time.Minute

	// absentEvery is how often to look why a pod is not made: no event of a pod says so.
	absentEvery = 30 * time.Second
)

// absent reports whether a pod of the run is missing that the Job should have made.
func (v *view) absent() bool {
	if final(v.was.Phase) {
		return false
	}
	if v.newest(0) == nil {
		return true
	}
	missing := v.state
	if missing == nil {
		missing = &crew.State{}
	}
	for _, m := range missing.Missing {
		if i := position(m.Index); i >= 0 && v.newest(i) == nil {
			return true
		}
	}
	return false
}

// refused says why the Job makes no pod, or nil. An error is none: it is only what can be said more.
func (o *observer) refused(ctx context.Context, cr *v1alpha1.Run, v *view) *podhealth.Hindrance {
	if !v.absent() {
		return nil
	}
	of := podhealth.Owner{Kind: "Job", Namespace: cr.GetNamespace(), Name: cr.Spec.ForProvider.Job}
	h, err := podhealth.Refused(ctx, o.direct, of, v.now.Add(-fresh))
	if err != nil {
		return nil
	}
	return h
}
