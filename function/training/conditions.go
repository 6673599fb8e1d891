// SPDX-License-Identifier: Apache-2.0

package training

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/crew"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/training/runs"
)

// conditions of the Training.
func (p *pass) conditions(d *compose.Draft) []xpv2.Condition {
	cs := []xpv2.Condition{check.Accepted(p.problems), d.Composed(p.accepted()), p.podsHealthy(), p.progressing(), p.succeeded()}
	if !p.accepted() {
		return append(cs, compose.Unchanged(p.Composite.Map(), v1alpha1.TypeModelRegistered, v1alpha1.TypeOnSchedule, v1alpha1.TypeCheckpointsHealthy, v1alpha1.TypeLineageSent)...)
	}
	if c := p.onSchedule(); c != nil {
		cs = append(cs, *c)
	}
	if c := p.checkpointsHealthy(); c != nil {
		cs = append(cs, *c)
	}
	if c := p.modelRegistered(); c != nil {
		cs = append(cs, *c)
	}
	return append(cs, p.lineage().Conditions()...)
}

// podsHealthy reports what blocks pods.
func (p *pass) podsHealthy() xpv2.Condition {
	r := p.present()
	const t = v1alpha1.TypePodsHealthy
	is := compose.True
	switch p.phase {
	case v1alpha1.TrainingEnding:
		return is(t, v1alpha1.ReasonFinished, "no rank runs any more, and the pods end")
	case v1alpha1.TrainingSucceeded, v1alpha1.TrainingFailed:
		return is(t, v1alpha1.ReasonFinished, "the Training has ended, and needs no pods")
	case v1alpha1.TrainingSuspended:
		return is(t, v1alpha1.ReasonStopped, "spec.suspend is set, and no pods are desired")
	case v1alpha1.TrainingPending, v1alpha1.TrainingScheduled:
		return is(t, v1alpha1.ReasonStopped, "no run has begun, and no pods are desired until then")
	case v1alpha1.TrainingQueued:
		return is(t, v1alpha1.ReasonStopped, "a queue has not admitted the run, and no pods are desired until then")
	default:
		return p.podsOfRun(r)
	}
}

// podsOfRun reports what blocks the pods of a run that should train.
func (p *pass) podsOfRun(r *observev1alpha1.RunObservation) xpv2.Condition {
	is, not := compose.True, compose.False
	const t = v1alpha1.TypePodsHealthy
	switch {
	case p.ledger.State == runs.Active && p.Kinds[observev1alpha1.RunGroupVersionKind] == compose.Unavailable:
		return not(t, v1alpha1.ReasonProviderMissing, "provider-capstan, which observes the pods, is not installed: install the package capstan")
	case r != nil && r.Pods != nil:
		return not(t, xpv2.ConditionReason(r.Pods.Reason), r.Pods.Message)
	case r != nil && r.Silent != "":
		return not(t, v1alpha1.ReasonCoordinatorSilent, r.Silent)
	case p.phase == v1alpha1.TrainingRunning && r != nil && len(r.Missing) > 0:
		return not(t, v1alpha1.ReasonMemberMissing, p.withoutMembers(r))
	case p.phase == v1alpha1.TrainingRunning:
		return is(t, v1alpha1.ReasonTraining, "all pods run, and nothing blocks them")
	default:
		return not(t, v1alpha1.ReasonStarting, "pods are starting")
	}
}

// maxNamed is how many missing pods a message has.
const maxNamed = 5

// withoutMembers says which pods are missing while all ranks run.
func (p *pass) withoutMembers(r *observev1alpha1.RunObservation) string {
	var pods []string
	known := false
	for _, m := range r.Missing[:min(len(r.Missing), maxNamed)] {
		where := ""
		if f := r.LastFault; f != nil && f.Index == m.Index && f.Rank < 0 && f.Node != "" {
			where, known = fmt.Sprintf(", last seen on node %s,", f.Node), true
		}
		pods = append(pods, fmt.Sprintf("pod %d%s is missing since %s", m.Index, where, m.Since.UTC().Format(time.RFC3339)))
	}
	if more := len(r.Missing) - len(pods); more > 0 {
		pods = append(pods, fmt.Sprintf("and %d more", more))
	}
	all := deref(p.spec.Spares)
	rest := "no spare is left"
	switch left := all - int32(len(r.Missing)); { //nolint:gosec // At most 100.
	case left == 1:
		rest = fmt.Sprintf("1 of %d spares is left", all)
	case left > 1:
		rest = fmt.Sprintf("%d of %d spares are left", left, all)
	}
	remedy := "See its events, and its node"
	switch {
	case known && len(pods) == 1:
		remedy = "If the node is lost, Kubernetes replaces the pod when the node is back, or when you delete the node"
	case len(r.Missing) > 1:
		remedy = "See their events, and their nodes"
	}
	return fmt.Sprintf("all ranks run, and %s: %s. %s", rest, strings.Join(pods, ", "), remedy)
}

// checkpointsHealthy reports whether checkpoints become complete in time, and old ones go. Nil: the spec asks for neither.
func (p *pass) checkpointsHealthy() *xpv2.Condition {
	c := p.spec.Checkpoint
	if c == nil || c.Every == nil && c.Keep == nil {
		return nil
	}
	const t = v1alpha1.TypeCheckpointsHealthy
	switch r := p.present(); {
	case r != nil && r.OverdueSince != nil && c.Every != nil && !p.over():
		return new(compose.False(t, v1alpha1.ReasonCheckpointOverdue, fmt.Sprintf(
			"ranks have made steps for more than %d times spec.checkpoint.every (%s), and no checkpoint became complete since %s: a fault would repeat them. %s",
			crew.OverdueAfter, check.Duration(c.Every.Duration), r.OverdueSince.UTC().Format(time.RFC3339), inTime(c))))
	case r != nil && r.Unremoved != "":
		return new(compose.False(t, v1alpha1.ReasonCheckpointsNotRemoved, r.Unremoved))
	default:
		return new(compose.True(t, v1alpha1.ReasonCheckpointsInTime, "no checkpoint is overdue, and old ones are removed as spec.checkpoint says"))
	}
}

// inTime says how a checkpoint becomes complete in time.
func inTime(c *v1alpha1.TrainingCheckpoint) string {
	how := "report it in the file of $" + crew.EnvProgress
	if c.Complete != "" {
		how = fmt.Sprintf("end it with the file that spec.checkpoint.complete names (%s)", c.Complete)
	}
	return fmt.Sprintf("Let the program write one every $%s seconds and %s, or raise spec.checkpoint.every", crew.EnvCheckpointEvery, how)
}

// progressing reports where the Training stands.
func (p *pass) progressing() xpv2.Condition {
	not := func(message string) xpv2.Condition {
		return compose.False(v1alpha1.TypeProgressing, xpv2.ConditionReason(p.phase), message)
	}
	l := p.ledger
	switch p.phase {
	case v1alpha1.TrainingRunning:
		if why := p.silent(); why != "" {
			return compose.Unknown(v1alpha1.TypeProgressing, v1alpha1.ReasonCoordinatorSilent,
				fmt.Sprintf("all ranks of run %d ran when their coordinator last answered. Now %s", l.Run, why))
		}
		return compose.True(v1alpha1.TypeProgressing, v1alpha1.ReasonTraining, fmt.Sprintf("all ranks of run %d run", l.Run))
	case v1alpha1.TrainingQueued:
		return not(p.inQueue())
	case v1alpha1.TrainingRecovering:
		return not("all ranks start again" + p.because())
	case v1alpha1.TrainingEnding:
		return not(fmt.Sprintf("no rank of run %d runs any more, and its pods end", l.Run))
	case v1alpha1.TrainingRestarting:
		return not(fmt.Sprintf("run %d follows once the pods of run %d are gone: %s%s", l.Run+1, l.Run, p.why(), p.remains()))
	case v1alpha1.TrainingSuspended:
		return not("spec.suspend is set: remove it to continue from the newest checkpoint")
	case v1alpha1.TrainingSucceeded:
		return not(fmt.Sprintf("run %d succeeded. %s", l.Run, p.again()))
	case v1alpha1.TrainingScheduled:
		return not("no run has begun. " + p.again())
	case v1alpha1.TrainingFailed:
		return not("the Training has failed: see the condition Succeeded" + p.onceMore())
	case v1alpha1.TrainingStarting:
		return not(fmt.Sprintf("pods of run %d are starting", l.Run))
	default:
		if !p.accepted() {
			return not("nothing runs, because the spec is not accepted: see the condition Accepted")
		}
		return not("objects are being created")
	}
}

// because of what all ranks start again.
func (p *pass) because() string {
	r := p.present()
	if r == nil || r.LastFault == nil {
		return ""
	}
	f := r.LastFault
	where := fmt.Sprintf("pod %d", f.Index)
	if f.Rank >= 0 {
		where = fmt.Sprintf("rank %d in pod %d", f.Rank, f.Index)
	}
	if f.Index < 0 {
		where = "a pod"
	}
	return fmt.Sprintf(" after attempt %d: %s: %s: %s", f.Attempt, f.Class, where, f.Message)
}

// why the last run ended.
func (p *pass) why() string {
	if h := p.ledger.History; len(h) > 0 && h[0].Run == p.ledger.Run && h[0].Message != "" && h[0].Outcome == p.ledger.Next {
		return h[0].Message
	}
	return map[runs.Outcome]string{runs.OutcomeRerun: "the spec asks for it"}[p.ledger.Next]
}

// remains says what the next run waits for although it should be gone, and until when.
func (p *pass) remains() string {
	if p.report == nil || p.report.Remains == nil {
		return ""
	}
	r := p.report.Remains
	text := fmt.Sprintf(". The grace period of pod %d is over, and its node %s does not say that it has ended", r.Index, r.Node)
	if at := p.ledger.Apart; at != nil {
		return text + fmt.Sprintf("; its crew is not complete since %s and runs no rank, so that run %d waits for the grace period and a minute only",
			at.UTC().Format(time.RFC3339), p.ledger.Run+1)
	}
	return text + ": if the node does not come back, delete it"
}

// succeeded reports how the Training has ended.
func (p *pass) succeeded() xpv2.Condition {
	const t = v1alpha1.TypeSucceeded
	l := p.ledger
	switch l.State {
	case runs.Succeeded:
		return compose.True(t, xpv2.ConditionReason(runs.Succeeded), fmt.Sprintf("run %d succeeded", l.Run))
	case runs.Failed:
		reason := cmp.Or(xpv2.ConditionReason(l.Reason), v1alpha1.ReasonProgramFailed)
		return compose.False(t, reason, fmt.Sprintf("run %d failed: %s. %s", l.Run, l.Message, remedy(reason)))
	default:
		return compose.Unknown(t, v1alpha1.ReasonNotFinished, "the Training has not ended")
	}
}

func remedy(reason xpv2.ConditionReason) string {
	switch reason {
	case v1alpha1.ReasonRunsLost:
		return "Correct what lost it, and set another spec.rerun.id"
	case v1alpha1.ReasonDeadlineExceeded:
		return "Raise spec.deadline, or set another spec.rerun.id to continue from the newest checkpoint"
	default:
		return "Correct the spec or the image, or set another spec.rerun.id to start again"
	}
}
