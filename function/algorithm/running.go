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

// runs tells whether the pods are those of a revision, and no others.
func (r running) runs(revision string) bool {
	return r.exists && r.noticed && r.revision == revision && r.updated == r.total
}

// holdsRoom tells whether there are pods, or are to be.
func (r running) holdsRoom() bool { return r.total > 0 || r.size > 0 }

// sizeAsIs is the number of pods that are asked for now.
func (r running) sizeAsIs() *int32 {
	return new(int32(r.size)) //nolint:gosec // The API server keeps it in an int32.
}

// rolledOut tells whether the pods that callers reach are those that should be
// there, and no others. While a spec cannot be carried out, those are the ones
// there are.
func (s *state) rolledOut() bool {
	revision := s.decision.live.revision
	if len(s.problems) > 0 {
		revision = s.running.revision
	}

	return s.running.runs(revision)
}

// upToDate tells whether callers reach what the spec asks for, and nothing goes
// on beside it.
func (s *state) upToDate() bool {
	return len(s.problems) == 0 && s.target != "" && s.ledger.Revision == s.target && s.decision.beside.revision == "" && s.rolledOut()
}

// needed is the number of pods that have to serve. What an autoscaler adds
// beyond its minimum is welcome and not needed.
func (s *state) needed() int64 {
	switch o := s.Observed[autoscalerOf(s.ledger.Slot)]; {
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

// serving tells whether enough pods serve callers.
func (s *state) serving() bool {
	return s.running.exists && s.running.available >= s.needed()
}

// complete tells whether every pod of a slot that there should be serves.
func (r running) complete() bool {
	return r.exists && r.noticed && r.updated == r.total && r.available >= r.size
}

// stopped tells whether no pods are asked for.
func (s *state) stopped() bool { return s.running.exists && s.needed() == 0 }
