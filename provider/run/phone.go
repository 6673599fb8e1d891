// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podask"
)

// A phone asks coordinators, and remembers what they said.
type phone struct{ *podask.Phone[crew.State] }

func newPhone(a ask, now func() time.Time) *phone { return &phone{podask.NewPhone(a, now)} }

// call the coordinator of a Run in a pod.
func (f *phone) call(ctx context.Context, cr *v1alpha1.Run, p *corev1.Pod) (state *crew.State, silent string, err error) {
	return f.Call(ctx, cr.GetUID(), p, cr.Spec.ForProvider.Number) //nolint:wrapcheck // It says why.
}

// next is how long to wait before the coordinator of a Run is called again.
func (f *phone) next(of types.UID) time.Duration { return f.Next(of) }
