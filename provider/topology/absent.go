// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"time"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

// absent says why members that should be there have no pod. None is reported while none is there, and once the members are to go.
func (o *observer) absent(ctx context.Context, cr *v1alpha1.Topology, v *view) map[string]*podhealth.Hindrance {
	out := map[string]*podhealth.Hindrance{}
	if cr.DeletionTimestamp != nil || v.parameters.Hibernated {
		return out
	}
	for _, name := range v.parameters.Members {
		if v.pod(name) != nil {
			continue
		}
		of := podhealth.Owner{Kind: "StatefulSet", Namespace: cr.GetNamespace(), Name: name, Pod: name + "-0"}
		// An error is none here: it is only what can be said more.
		if h, err := podhealth.Refused(ctx, o.direct, of, time.Time{}); err == nil && h != nil {
			out[name] = h
		}
	}
	return out
}
