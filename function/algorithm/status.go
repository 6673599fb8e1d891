// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// status is complete: Crossplane removes what is left out.
func status(s *state) error {
	st := v1alpha1.AlgorithmStatus{
		Phase:         s.phase(),
		Replicas:      int32(s.running.total), //nolint:gosec // The API server keeps it in an int32.
		ReadyReplicas: int32(s.running.ready), //nolint:gosec // The same.
		Selector:      query(map[string]string{labelAlgorithm: s.name}),
		Withheld:      s.withholding.Entries(s.asked),
	}

	if s.Observed[nameService] != nil {
		st.Endpoint = fmt.Sprintf("http://%s.%s.svc", s.name, s.namespace)
	}

	s.plan.Status = st

	// What a spec that cannot be carried out leaves as it is, the status does, too.
	if len(s.problems) > 0 {
		return s.remember()
	}

	st.Revision = s.revisionStatus()
	st.Rollout = s.rolloutStatus()
	st.Experiment = s.experimentStatus()
	st.SLO = s.sloStatus()

	if s.fromRegistry() != nil {
		st.Model, _ = s.resolution()
	}

	if c, told := s.routeAccepted(); told && c.Status == corev1.ConditionTrue {
		st.Route = cmp.Or(s.spec.Route.Host, "*") + s.spec.Route.Path
	}

	if s.spec.Scaling != nil {
		if l := s.load(); l.Signal != "" {
			st.Scaling = &l
		}
	}

	for _, m := range s.metrics() {
		st.Metrics = append(st.Metrics, v1alpha1.MetricStatus{Name: m.name, Verdict: m.verdict, Value: m.value})
	}

	s.plan.Status = st

	return nil
}

// remember what the status says of revisions, model and the rest.
func (s *state) remember() error {
	next, err := compose.AsMap(s.plan.Status)
	if err != nil {
		return fmt.Errorf("cannot keep the status: %w", err)
	}

	before := compose.Map(s.Composite.Map(), "status")
	for _, k := range []string{"revision", "rollout", "model", "route", "scaling", "metrics", "experiment", "slo"} {
		if v, ok := before[k]; ok {
			next[k] = v
		}
	}

	s.plan.Status = next

	return nil
}

func (s *state) revisionStatus() *v1alpha1.RevisionStatus {
	d := s.decision
	st := &v1alpha1.RevisionStatus{Live: d.ledger.Revision, Slot: d.ledger.Slot, History: s.history}

	if s.target != d.ledger.Revision {
		st.Candidate = s.target
	}

	if d.beside.revision != "" && !d.coming && d.ledger.Previous == "" {
		st.Draining = d.beside.revision
	}

	return st
}

func (s *state) phase() v1alpha1.Phase {
	reason, _ := s.trouble(s.ledger.Slot)
	coming, _ := s.trouble(s.decision.beside.slot)

	switch {
	case !s.running.exists:
		return v1alpha1.PhasePending
	case s.stopped():
		return v1alpha1.PhaseStopped
	case reason != "", s.decision.coming && coming != "":
		return v1alpha1.PhaseDegraded
	case s.rolledOut() && s.serving() && (len(s.problems) > 0 || s.decision.ledger.Revision == s.target || s.target == "" || s.rolledBack()):
		return v1alpha1.PhaseReady
	default:
		return v1alpha1.PhaseProgressing
	}
}

// rolledBack tells whether the spec asks for what was rolled back, so that nothing
// goes on.
func (s *state) rolledBack() bool {
	l := s.decision.ledger
	return l.Phase == v1alpha1.RolloutRolledBack || s.decision.rollout == nil && l.failure(s.target) != nil
}

// readiness of the Algorithm: enough pods serve and nothing it needs is
// missing. Once ready, it stays so while it is updated or changes its size.
func readiness(s *state) error {
	before := compose.IsTrue(s.Composite.Map(), xpv2.TypeReady)
	missing := slices.ContainsFunc(s.asked, func(a compose.Asked) bool { return !a.Optional && a.Missing(before) })
	s.plan.Ready = !missing && (s.serving() || before && s.unhindered())

	return nil
}

// ttl by what the Algorithm waits for.
func ttl(s *state) error {
	entries := s.withholding.Entries(s.asked)
	deadlines := make([]time.Time, 0, len(entries))

	for _, e := range entries {
		deadlines = append(deadlines, e.Until.Time)
	}

	pace := compose.Settled

	if !s.plan.Ready || !s.upToDate() && !s.experimenting() {
		pace = compose.Waiting
	}

	_, trouble := s.scalerTrouble()

	for _, at := range append(s.rolloutDeadlines(), s.decision.until, trouble.Add(scalerPatience)) {
		if at.After(s.Now) {
			deadlines = append(deadlines, at)
		}
	}

	if compose.Unheard(s.Request) {
		pace = compose.Following
	}

	if slices.ContainsFunc(s.asked, func(a compose.Asked) bool { return !a.Observed }) {
		pace = compose.Asking
	}

	s.plan.TTL = pace.TTL(s.Now, deadlines...)

	return nil
}

// sortedKeys of a map.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// settle the status. What was refused is urgent.
func settle(s *state) error {
	urgent, err := s.withholding.Changed(s.Request, s.asked)
	if err != nil {
		return err
	}

	compose.Settle(s.Request, s.plan, urgent)

	return nil
}
