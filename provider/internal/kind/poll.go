// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

const (
	// unready is the poll interval of a resource that is not ready: its becoming ready must not wait for the long poll.
	unready = 30 * time.Second

	// jitter is the share by which polls are moved, so that resources that were created together do not stay together.
	jitter = 0.1
)

// Poll is how long to wait before mg is observed again: every, plus or minus a tenth, or half a minute while mg is not ready.
func Poll(mg resource.Managed, every time.Duration) time.Duration {
	return After(mg.GetCondition(xpv2.TypeReady), every)
}

// After is how long to wait before an object with this condition is observed again: every, plus or minus a tenth, or half a
// minute while the condition is not true.
func After(c xpv2.Condition, every time.Duration) time.Duration {
	if c.Status != corev1.ConditionTrue {
		return min(every, unready)
	}
	return every + time.Duration((rand.Float64()*2-1)*jitter*float64(every)) //nolint:gosec // Not a secret.
}
