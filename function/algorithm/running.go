// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// running is what the planner looks at in the observed Deployment.
type running struct {
	exists bool

	// revision that was asked for when it was last applied.
	revision string

	// noticed tells whether its controller has seen its latest spec, so that
	// the numbers below speak of it.
	noticed bool

	// size is the number of pods it asks for, total the number there are,
	// updated those of its latest template.
	size, total, updated, ready, available int64

	// autoscaled tells whether another manager owns its size by way of the
	// scale subresource.
	autoscaled bool

	// refusal of its pods, if they are refused.
	refusal string

	// stalled tells whether an update made no progress for too long.
	stalled bool
}

func observe(o compose.Object) running {
	if o == nil {
		return running{}
	}

	m := o.Map()
	status := compose.Map(m, "status")

	r := running{
		exists:     true,
		revision:   compose.Text(m, "metadata", "annotations", annotationRevision),
		noticed:    compose.Number(status, 0, "observedGeneration") >= compose.Number(m, 0, "metadata", "generation"),
		size:       compose.Number(m, 1, "spec", "replicas"),
		total:      compose.Number(status, 0, "replicas"),
		updated:    compose.Number(status, 0, "updatedReplicas"),
		ready:      compose.Number(status, 0, "readyReplicas"),
		available:  compose.Number(status, 0, "availableReplicas"),
		autoscaled: compose.OwnsField(o, "scale", "spec", "replicas"),
		stalled:    compose.Text(compose.Condition(m, "Progressing"), "reason") == "ProgressDeadlineExceeded",
	}

	if c := compose.Condition(m, "ReplicaFailure"); c["status"] == string(corev1.ConditionTrue) && c["reason"] == "FailedCreate" {
		r.refusal = compose.Text(c, "message")
	}

	return r
}

// rolledOut tells whether the pods are those that the spec asks for, and no
// others.
func (s *state) rolledOut() bool {
	r := s.running
	wanted := len(s.problems) > 0 || r.revision == s.revision

	return r.exists && r.noticed && wanted && r.updated == r.total
}

// needed is the number of pods that have to serve. What an autoscaler adds
// beyond its minimum is welcome and not needed.
func (s *state) needed() int64 {
	switch o := s.Observed[nameAutoscaler]; {
	case len(s.problems) > 0 && o != nil:
		return compose.Number(o.Map(), 1, "spec", "minReplicas")
	case len(s.problems) > 0:
		return s.running.size
	case s.spec.Scaling != nil:
		return int64(s.spec.Scaling.MinReplicas)
	default:
		return int64(*s.spec.Replicas)
	}
}

// serving tells whether enough pods serve, of whatever revision.
func (s *state) serving() bool {
	return s.running.exists && s.running.available >= s.needed()
}

// complete tells whether every pod there should be serves, of the revision that
// was asked for.
func (s *state) complete() bool {
	return s.rolledOut() && s.serving() && s.running.available >= s.running.size
}

// stopped tells whether no pods are asked for.
func (s *state) stopped() bool { return s.running.exists && s.needed() == 0 }
