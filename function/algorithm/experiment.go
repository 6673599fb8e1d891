// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// An experiment goes the way of a rollout's first step, and never further: its arm B
// runs in the idle slot as the candidate, and what ends it takes callers back.
//
//	Stable ─► Preparing ─► Stepping ─► RollingBack ─► Stable
//
// So whatever holds of a candidate holds of arm B: no caller meets it before its
// replicas serve, no more than its share do, and a fault of it takes all of them back.

// A trying is an experiment that goes on, as the ledger remembers it.
type trying struct {
	ID string `json:"id"`

	// Key of everything that the experiment is about. With another one it is another.
	Key string `json:"key"`

	// Started is when callers were first seen to be sent to both arms.
	Started time.Time `json:"started,omitzero"`
}

// mostExperimented ids are remembered.
const mostExperimented = 20

// experiment finds out what arm B would be.
func experiment(s *state) error {
	e := s.spec.Experiment
	if e == nil || s.target == "" || s.ledger.experimented(e.ID) {
		return nil
	}

	b := *s
	b.target, b.awaits = "", nil
	b.spec, b.written = withArm(s.spec, e.ArmB), withArm(s.written, e.ArmB)

	if e.ArmB.ModelVersion != "" {
		if b.resolved = s.modelOfArm(e.ArmB.ModelVersion); b.resolved == nil {
			return nil
		}
	}

	for _, st := range []step{{"Model", modelSource}, {"Revision", revision}} {
		if err := st.do(&b); err != nil {
			return fmt.Errorf("cannot plan arm B: %w", err)
		}
	}

	s.armB = &b

	return nil
}

// withArm is a spec with what is different in arm B.
func withArm(spec v1alpha1.AlgorithmSpec, arm v1alpha1.ExperimentArm) v1alpha1.AlgorithmSpec {
	b := *spec.DeepCopy()

	if arm.Image != "" {
		b.Image = arm.Image
	}

	for _, v := range arm.Env {
		if i := slices.IndexFunc(b.Env, func(e v1alpha1.EnvVar) bool { return e.Name == v.Name }); i >= 0 {
			b.Env[i] = v
		} else {
			b.Env = append(b.Env, v)
		}
	}

	return b
}

// modelOfArm asks the registry for the version of arm B, and gives it once it is known.
func (s *state) modelOfArm(version string) *v1alpha1.ModelStatus {
	m := *s.fromRegistry()
	m.Version, m.Alias = version, ""

	gvk, hash := registryv1alpha1.ModelVersionGroupVersionKind, hashOf(m.Name, "armB")
	resource := nameModelVersionPrefix + hash
	o := s.Observed[resource]

	if s.Kinds[gvk] == compose.Available || o != nil {
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		s.offer(resource, compose.NewManifest(apiVersion, kind, s.metadata(compose.Name(s.name, "model", hash)), modelVersionSpec{
			ManagementPolicies:      xpv2.ManagementPolicies{xpv2.ManagementActionObserve},
			ProviderConfigReference: m.ProviderConfigReference,
			ForProvider:             registryv1alpha1.ModelVersionParameters{Model: m.Name, Version: &m.Version},
		}))
	}

	if o == nil || !asks(o.Map(), &m) {
		return nil
	}

	seen := compose.Map(o.Map(), "status", "atProvider")
	if compose.Text(seen, "version") != version || compose.Text(seen, "status") != "" && compose.Text(seen, "status") != "READY" {
		return nil
	}

	return resolvedModel(&m, seen)
}

// keyOf everything that an experiment is about. How long it may last is not: the test
// holds whenever it ends.
func keyOf(e *v1alpha1.Experiment) string {
	about := e.DeepCopy()
	about.Stop.Duration = nil

	raw, _ := json.Marshal(about) //nolint:errchkjson // Text and finite numbers always marshal.

	return compose.Hash(raw)
}

// experimented tells whether an experiment of an id has been run.
func (l ledger) experimented(id string) bool { return slices.Contains(l.Experimented, id) }

// concluded experiment: it is remembered, so that it does not run again, and what came
// of it.
func (l ledger) concluded(came v1alpha1.ExperimentStatus) ledger {
	l.Experimented = slices.Insert(slices.Clone(l.Experimented), 0, came.ID)
	l.Experimented = l.Experimented[:min(len(l.Experimented), mostExperimented)]
	l.Compared, l.Experiment = &came, nil

	return l
}

// experiments asks for one while nothing else goes on.
func (r *rollout) experiments() {
	l, e := &r.ledger, r.spec.Experiment
	if e == nil || l.experimented(e.ID) {
		return
	}

	if reason, message := r.mayNotExperiment(); reason != "" {
		r.waits, r.waitsFor = reason, message
		return
	}

	l.Candidate, l.Previous, l.Weight, l.Evidence = r.armB.target, "", 0, 0
	l.Next, l.NextBy = 0, ""
	l.Experiment = &trying{ID: e.ID, Key: keyOf(e)}
	r.sizing = r.next()
	r.to(v1alpha1.RolloutPreparing, v1alpha1.ReasonExperimentBegins,
		fmt.Sprintf("experiment %s: replicas of arm B, revision %s, start, and no caller reaches it", e.ID, l.Candidate))
	l.Began = l.Entered
}

// mayNotExperiment tells what keeps an experiment from beginning.
func (r *rollout) mayNotExperiment() (xpv2.ConditionReason, string) {
	switch {
	case r.byReplicas():
		return v1alpha1.ReasonGatewayAPIMissing, "without the Gateway API nothing keeps the arms apart: install its CRDs and a controller, or remove spec.experiment"
	case !r.observes():
		return v1alpha1.ReasonProviderMissing, providerMissing
	case r.armB == nil:
		return v1alpha1.ReasonAwaitingModel, fmt.Sprintf("version %s of the model is not known: see ModelVersion %s of this namespace",
			r.spec.Experiment.ArmB.ModelVersion, compose.Name(r.name, "model", hashOf(r.fromRegistry().Name, "armB")))
	case r.armB.target == r.ledger.Revision:
		return v1alpha1.ReasonSameRevision, "arm B is what the spec asks for: change something in spec.experiment.armB"
	case r.failure(r.armB.target) != nil:
		return v1alpha1.ReasonRolledBack, fmt.Sprintf("revision %s of arm B was rolled back: %s: change spec.experiment.armB",
			r.armB.target, r.failure(r.armB.target).Reason)
	case r.there.exists && r.there.revision != r.armB.target:
		return v1alpha1.ReasonRolloutFirst, "arm B starts once what is in its place is gone"
	case r.running.available == 0:
		return v1alpha1.ReasonNotServing, "no replica of arm A serves"
	default:
		return r.notNow()
	}
}

// experimentGivenUp tells whether nobody wants the experiment any more, or it cannot go
// on.
func (r *rollout) experimentGivenUp() bool {
	l, e := &r.ledger, r.spec.Experiment

	switch {
	case names(r.lc.Abort, l.Candidate):
		r.fails(v1alpha1.ReasonAborted, "spec.lifecycle.abort names it")
	case e == nil:
		r.leaves(v1alpha1.ReasonExperimentRemoved, fmt.Sprintf("experiment %s: spec.experiment was removed", l.Experiment.ID))
	case e.ID != l.Experiment.ID, keyOf(e) != l.Experiment.Key:
		r.leaves(v1alpha1.ReasonExperimentEdited, fmt.Sprintf("experiment %s: what was counted is about another one", l.Experiment.ID))
	case r.target != "" && r.target != l.Revision:
		r.leaves(v1alpha1.ReasonSuperseded, fmt.Sprintf("experiment %s: the spec asks for revision %s, and its rollout goes first", l.Experiment.ID, r.target))
	case r.armB != nil && r.armB.target != l.Candidate:
		r.leaves(v1alpha1.ReasonExperimentEdited, fmt.Sprintf("experiment %s: arm B is another revision", l.Experiment.ID))
	case r.byReplicas():
		r.leaves(v1alpha1.ReasonGatewayAPIMissing, fmt.Sprintf("experiment %s: no Gateway keeps the arms apart any more", l.Experiment.ID))
	default:
		return false
	}

	return true
}

// compares the arms, whose callers were seen to be sent there. A guardrail that is
// violated has ended the experiment before.
func (r *rollout) compares() {
	l, e := &r.ledger, r.spec.Experiment
	found := r.evidence.found()
	v, decided := verdictOf(found, *e.Metric.MinEffect)
	open := r.evidence.unsettled(v.winner)

	switch {
	case decided && len(open) == 0:
		r.ended(v.winner, v.reason, v.message+": "+differs(found))
		return
	case r.over(l.Began, e.Stop.Duration.Duration):
		why := "too little is known: " + differs(found)
		if decided {
			why = fmt.Sprintf("guardrails have not passed (%s), although %s: %s", strings.Join(open, ", "), v.message, differs(found))
		}

		r.ended(v1alpha1.WinnerInconclusive, v1alpha1.ReasonDurationOver, fmt.Sprintf("%s are over, and %s", words(e.Stop.Duration.Duration), why))

		return
	}

	if reason, message := r.unknown(); reason != "" {
		r.holds(v1alpha1.RolloutStepping, reason, message)
		return
	}

	if r.resumes(v1alpha1.ReasonMetricsUnavailable, v1alpha1.ReasonAwaitingRoute) {
		return
	}

	r.message = fmt.Sprintf("experiment %s: arm A is revision %s, arm B %s", e.ID, l.Revision, l.Candidate)
	if decided {
		r.message += fmt.Sprintf(": %s, and it goes on until its guardrails have passed: %s", v.message, strings.Join(open, ", "))
	}
}

// A result is what the metric of an experiment says.
type result struct {
	winner  v1alpha1.ExperimentWinner
	reason  xpv2.ConditionReason
	message string
}

// verdictOf the metric, if it says anything yet.
func verdictOf(o observev1alpha1.ExperimentObservation, minEffect float64) (result, bool) {
	switch o.Result {
	case observev1alpha1.ExperimentCanaryBetter:
		return result{v1alpha1.WinnerB, v1alpha1.ReasonArmBBetter, "arm B is better"}, true
	case observev1alpha1.ExperimentBaselineBetter:
		return result{v1alpha1.WinnerA, v1alpha1.ReasonArmABetter, "arm A is better"}, true
	case observev1alpha1.ExperimentNoDifference:
		return result{v1alpha1.WinnerNone, v1alpha1.ReasonNoDifference, fmt.Sprintf("they differ by less than %g", minEffect)}, true
	default:
		return result{}, false
	}
}

// unsettled guardrails, by name: an experiment does not end by its metric before they
// have told whether arm B does harm. Who is to adopt it, or is told that it is as good,
// needs to know that it passes them. Where A is better nobody is to, and callers are
// not kept in the worse arm for it: as many looks are enough as would have shown a
// violation.
func (e evidence) unsettled(winner v1alpha1.ExperimentWinner) []string {
	var names []string

	for _, c := range e.checks {
		settled := strings.HasSuffix(c.Verdicts, strings.Repeat("P", passesNeeded))
		if answered := strings.ReplaceAll(c.Verdicts, "E", ""); winner == v1alpha1.WinnerA {
			settled = len(answered) >= passesNeeded && !strings.HasSuffix(answered, "F")
		}

		if !settled {
			names = append(names, c.Name)
		}
	}

	return names
}

// ended experiment, of which something came.
func (r *rollout) ended(winner v1alpha1.ExperimentWinner, reason xpv2.ConditionReason, message string) {
	r.winner = winner
	r.leaves(reason, fmt.Sprintf("experiment %s: %s", r.ledger.Experiment.ID, message))
}

// concludes the experiment that the ledger remembers.
func (r *rollout) concludes(reason xpv2.ConditionReason, message string) {
	l := &r.ledger
	came := r.compared(l.Experiment)
	came.Phase, came.Winner, came.Reason, came.Message = v1alpha1.ExperimentEnded, r.winner, string(reason), clipped(message)
	came.EndedAt = &metav1.Time{Time: r.clock()}

	if came.Winner == "" {
		came.Winner = v1alpha1.WinnerInconclusive
	}

	*l = l.concluded(came)
	l.Candidate = ""
}

// differs tells by how much the arms do.
func differs(o observev1alpha1.ExperimentObservation) string {
	if o.Effect == nil || o.Lower == nil || o.Upper == nil || o.Canary == nil || o.Baseline == nil {
		if o.Message != "" {
			return o.Message
		}

		return "nothing was counted"
	}

	return fmt.Sprintf("B less A is %.4g (%.4g to %.4g): %.4g of %d, and %.4g of %d",
		*o.Effect, *o.Lower, *o.Upper, o.Canary.Value, o.Canary.Samples, o.Baseline.Value, o.Baseline.Samples)
}

// found is how the arms compare, as the Analysis tells. It is empty as long as it tells
// nothing.
func (e evidence) found() observev1alpha1.ExperimentObservation {
	var o observev1alpha1.ExperimentObservation

	raw, err := json.Marshal(e.experiment)
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}

	// What cannot be read, as from a later version, tells nothing.
	if err != nil {
		return observev1alpha1.ExperimentObservation{}
	}

	return o
}

// compared arms of an experiment, by the evidence there is.
func (r *rollout) compared(t *trying) v1alpha1.ExperimentStatus {
	l, found := r.ledger, r.evidence.found()
	st := v1alpha1.ExperimentStatus{
		ID: t.ID, Effect: found.Effect, Lower: found.Lower, Upper: found.Upper,
		A: armStatus(l.Revision, found.Baseline), B: armStatus(l.Candidate, found.Canary),
	}

	if !t.Started.IsZero() {
		st.StartedAt = &metav1.Time{Time: t.Started}
	}

	return st
}

func armStatus(revision string, of *observev1alpha1.ExperimentShareOf) *v1alpha1.ExperimentArmStatus {
	st := &v1alpha1.ExperimentArmStatus{Revision: revision}
	if of != nil {
		st.Value, st.Samples = &of.Value, &of.Samples
	}

	return st
}

// experimentStatus tells where an experiment stands, or what came of the last one.
func (s *state) experimentStatus() *v1alpha1.ExperimentStatus {
	l, e, r := s.decision.ledger, s.spec.Experiment, s.decision.rollout

	switch {
	case r != nil && l.Experiment != nil:
		st := r.compared(l.Experiment)
		if l.Evidence == 0 || l.Evidence != s.ledger.Evidence {
			st = (&rollout{ledger: l}).compared(l.Experiment)
		}

		st.Phase, st.Reason, st.Message = v1alpha1.ExperimentRunning, string(v1alpha1.ReasonExperimenting), r.message
		if l.standing() == v1alpha1.RolloutPreparing {
			st.Phase, st.Reason = v1alpha1.ExperimentPreparing, string(v1alpha1.ReasonPreparing)
		}

		if l.Phase == v1alpha1.RolloutHolding {
			st.Reason = string(l.Reason)
		}

		return &st
	case e != nil && !l.experimented(e.ID):
		st := &v1alpha1.ExperimentStatus{
			ID: e.ID, Phase: v1alpha1.ExperimentWaiting, Reason: string(v1alpha1.ReasonRolloutFirst),
			Message: "it begins once all callers reach what the spec asks for, and nothing else is in the other slot",
		}

		if r != nil && r.waits != "" {
			st.Reason, st.Message = string(r.waits), r.waitsFor
		}

		return st
	case e != nil && (l.Compared == nil || l.Compared.ID != e.ID):
		return &v1alpha1.ExperimentStatus{
			ID: e.ID, Phase: v1alpha1.ExperimentEnded, Reason: string(v1alpha1.ReasonExperimentOver), Winner: v1alpha1.WinnerInconclusive,
			Message: fmt.Sprintf("experiment %s has been run: choose another id, or remove spec.experiment", e.ID),
		}
	default:
		return l.Compared
	}
}

// experimentDecided tells what came of the experiment that the spec asks for. It changes
// with the phase only: numbers that change by themselves are told in status.experiment.
func (s *state) experimentDecided() (xpv2.Condition, bool) {
	st := s.experimentStatus()
	if st == nil || s.spec.Experiment == nil {
		return xpv2.Condition{}, false
	}

	c := xpv2.Condition{
		Type: v1alpha1.TypeExperimentDecided, Status: corev1.ConditionUnknown,
		Reason: xpv2.ConditionReason(st.Reason), Message: st.Message,
	}

	switch {
	case st.Phase == v1alpha1.ExperimentEnded && st.Winner == v1alpha1.WinnerInconclusive:
		c.Status = corev1.ConditionFalse
	case st.Phase == v1alpha1.ExperimentEnded:
		c.Status = corev1.ConditionTrue
	}

	return c, true
}

// experimenting tells whether callers are sent to both arms, which nothing but evidence
// and time ends.
func (s *state) experimenting() bool {
	l := s.decision.ledger
	return l.Experiment != nil && l.Evidence != 0
}

// asking is what is asked of a candidate: by the lifecycle, or of arm B by the
// guardrails.
func (s *state) asking(l ledger) *v1alpha1.Lifecycle {
	e := s.spec.Experiment
	if l.Experiment == nil || e == nil {
		return s.spec.Lifecycle
	}

	return &v1alpha1.Lifecycle{
		SuccessThreshold: e.Guardrails.SuccessThreshold, Latency: e.Guardrails.Latency, MinSamples: e.Stop.MinSamples,
	}
}

// experimentParameters ask which arm is the better one.
func (s *state) experimentParameters() *observev1alpha1.ExperimentParameters {
	e := s.spec.Experiment
	if s.decision.ledger.Experiment == nil || e == nil {
		return nil
	}

	return &observev1alpha1.ExperimentParameters{
		Kind: observev1alpha1.ExperimentKind(e.Metric.Kind), Events: e.Metric.Query, Of: e.Metric.Of, WithinMs: e.Metric.WithinMs,
		LowerIsBetter: e.Metric.Direction == v1alpha1.DirectionLower,
		MinEffect:     *e.Metric.MinEffect, MinSamples: *e.Stop.MinSamples, Confidence: *e.Stop.Confidence,
	}
}

// assigned are headers and cookies whose callers meet the candidate.
func (s *state) assigned() []v1alpha1.CallerMatch {
	switch e := s.spec.Experiment; {
	case s.decision.ledger.Experiment != nil && e != nil:
		return e.Assignment.Match
	case s.decision.ledger.Experiment != nil:
		return nil
	default:
		return s.spec.Lifecycle.Match
	}
}

// drawn is what the Gateway sends to a candidate at random, of a share of callers: none
// where headers and cookies say who meets it.
func (s *state) drawn(l ledger, weight int32) int32 {
	if e := s.spec.Experiment; l.Experiment != nil && e != nil && len(e.Assignment.Match) > 0 {
		return 0
	}

	return weight
}
