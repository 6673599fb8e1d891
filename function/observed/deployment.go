// SPDX-License-Identifier: Apache-2.0

package observed

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// A Deployment is what planners use of one. The zero value is one that does not exist.
type Deployment struct {
	Exists bool

	// Noticed reports whether its controller has seen its latest spec, so that the numbers below belong to it.
	Noticed bool

	// Size is the number of desired pods, Total the number that exist, Updated the pods of the latest template.
	Size, Total, Updated, Ready, Available int64

	// Autoscaled reports whether another manager owns the size by way of the scale subresource.
	Autoscaled bool

	// Refusal of its pods by the API server, or empty.
	Refusal string

	// Stalled reports whether an update made no progress for too long.
	Stalled bool
}

// NewDeployment is the view of an observed Deployment, which may be nil.
func NewDeployment(o compose.Object) Deployment {
	if o == nil {
		return Deployment{}
	}
	m := map[string]any{"status": o.Field("status")}
	status := compose.Map(m, "status")
	d := Deployment{
		Exists:     true,
		Noticed:    compose.Number(status, 0, "observedGeneration") >= compose.NumberOf(o, 0, "metadata", "generation"),
		Size:       compose.NumberOf(o, 1, "spec", "replicas"),
		Total:      compose.Number(status, 0, "replicas"),
		Updated:    compose.Number(status, 0, "updatedReplicas"),
		Ready:      compose.Number(status, 0, "readyReplicas"),
		Available:  compose.Number(status, 0, "availableReplicas"),
		Autoscaled: compose.OwnsField(o, "scale", "spec", "replicas"),
		Stalled:    compose.Text(compose.Condition(m, "Progressing"), "reason") == "ProgressDeadlineExceeded",
	}
	if c := compose.Condition(m, "ReplicaFailure"); c["status"] == string(corev1.ConditionTrue) && c["reason"] == "FailedCreate" {
		d.Refusal = compose.Text(c, "message")
	}
	return d
}

// HoldsRoom reports whether there are pods, or will be.
func (d Deployment) HoldsRoom() bool { return d.Total > 0 || d.Size > 0 }

// Current reports whether all pods are of the latest template.
func (d Deployment) Current() bool { return d.Exists && d.Noticed && d.Updated == d.Total }

// Complete reports whether every desired pod serves.
func (d Deployment) Complete() bool { return d.Current() && d.Available >= d.Size }
