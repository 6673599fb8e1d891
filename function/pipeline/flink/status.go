// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/flink"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/pipeline/flink/names"
	"github.com/capstan-dev/capstan/function/pipeline/flink/revisions"
)

// present is what is reported about the present revision, or nil.
func (p *pass) present() *observev1alpha1.FlinkJobObservation {
	if p.report == nil || p.report.Revision != p.ledger.Revision {
		return nil
	}
	return p.report
}

// silent is why the JobManager does not answer, or empty.
func (p *pass) silent() string {
	if p.report != nil {
		return p.report.Silent
	}
	return ""
}

// phaseNow in one word.
func (p *pass) phaseNow() v1alpha1.PipelinePhase {
	if p.ledger.Revision == 0 {
		return v1alpha1.PipelinePending
	}
	r := p.present()
	if p.spec.Suspend {
		if o := p.Observed[names.JobManager]; o != nil && compose.NumberOf(o, 0, "status", "replicas") > 0 {
			return v1alpha1.PipelineUpgrading
		}
		return v1alpha1.PipelineSuspended
	}
	if r == nil {
		if p.report != nil && p.report.Revision > 0 {
			return v1alpha1.PipelineUpgrading
		}
		return v1alpha1.PipelineStarting
	}
	switch flink.Phase(r.Phase) {
	case flink.PhaseRunning:
		return v1alpha1.PipelineRunning
	case flink.PhaseRestarting, flink.PhaseStopping, flink.PhaseStopped:
		return v1alpha1.PipelineRecovering
	case flink.PhaseFinished:
		return v1alpha1.PipelineSucceeded
	case flink.PhaseCanceled, flink.PhaseBlocked:
		return v1alpha1.PipelineFailed
	default:
		return v1alpha1.PipelineStarting
	}
}

// status is complete: Crossplane removes what is left out.
func (p *pass) status(d *compose.Draft) v1alpha1.PipelineStatus {
	l := p.ledger
	st := v1alpha1.PipelineStatus{Phase: p.phase, Ledger: l.Text(), Withheld: d.Withheld()}
	if l.Revision == 0 {
		return st
	}
	s := &v1alpha1.PipelineStream{}
	s.Revision = l.Revision
	if f := l.Failed; f != nil {
		s.RolledBack = &v1alpha1.PipelineFlinkRolledBack{Revision: f.Revision, At: metav1.NewTime(f.At), Message: f.Why}
	}
	if r := p.report; r != nil {
		s.Savepoint, s.SavepointError = saved(r.Savepoint), r.SavepointError
	}
	if r := p.present(); r != nil {
		s.StartedAt, s.Restarts, s.From = r.RunningSince, r.Restarts, saved(r.From)
		s.Parallelism, s.TaskManagers = r.Parallelism, r.TaskManagers
		if r.Fault != nil {
			s.LastFault = r.Fault.Message
		}
		if c := r.Checkpoint; c != nil {
			s.Checkpoint = &v1alpha1.PipelineFlinkCheckpoint{ID: c.ID, At: c.At, Size: c.Bytes, Took: (time.Duration(c.Millis) * time.Millisecond).String()}
		}
	} else if before := p.before(); before != nil && before.Revision == l.Revision {
		// What is known of the revision stays while its JobManager is gone.
		s.Checkpoint, s.From, s.Restarts = before.Checkpoint, before.From, before.Restarts
	}
	st.Stream = s
	return st
}

// before is the stream as it was written. What cannot be read is nil: only this function writes it.
func (p *pass) before() *v1alpha1.PipelineStream {
	var st v1alpha1.PipelineStatus
	raw, err := json.Marshal(compose.Map(p.Composite.Map(), "status"))
	if err != nil || json.Unmarshal(raw, &st) != nil {
		return nil
	}
	return st.Stream
}

func saved(s *observev1alpha1.FlinkJobState) *v1alpha1.PipelineFlinkSaved {
	if s == nil {
		return nil
	}
	return &v1alpha1.PipelineFlinkSaved{Path: s.Path, ID: s.ID, At: s.At}
}

// conditions of the stream.
func (p *pass) conditions(d *compose.Draft) []xpv2.Condition {
	cs := []xpv2.Condition{check.Accepted(p.problems), d.Composed(p.accepted()), p.podsHealthy(), p.progressing(), p.stateSaved(), p.revisionStable()}
	if !p.accepted() {
		return append(cs, compose.Unchanged(p.Composite.Map(), v1alpha1.TypeLineageSent)...)
	}
	return append(cs, p.lineage().Conditions()...)
}

// podsHealthy reports what blocks pods.
func (p *pass) podsHealthy() xpv2.Condition {
	const t = v1alpha1.TypePodsHealthy
	r := p.report
	switch {
	case p.phase == v1alpha1.PipelineSuspended:
		return compose.True(t, v1alpha1.ReasonStopped, "spec.suspend is set, and no pods are desired")
	case p.Kinds[observev1alpha1.FlinkJobGroupVersionKind] == compose.Unavailable:
		return compose.False(t, v1alpha1.ReasonProviderMissing, "provider-capstan, which observes the pods, is not installed: install the package capstan")
	case r != nil && r.Pods != nil:
		return compose.False(t, xpv2.ConditionReason(r.Pods.Reason), r.Pods.Message)
	case r != nil && r.Silent != "":
		return compose.False(t, v1alpha1.ReasonCoordinatorSilent, r.Silent)
	case p.phase == v1alpha1.PipelineRunning:
		return compose.True(t, v1alpha1.ReasonServing, "all pods run, and nothing blocks them")
	case p.phase == v1alpha1.PipelineSucceeded, p.phase == v1alpha1.PipelineFailed:
		return compose.True(t, v1alpha1.ReasonFinished, "the job does not run: see the condition Progressing")
	}
	return compose.False(t, v1alpha1.ReasonStarting, "pods are starting")
}

// progressing reports where the stream stands.
func (p *pass) progressing() xpv2.Condition {
	not := func(message string) xpv2.Condition {
		return compose.False(v1alpha1.TypeProgressing, xpv2.ConditionReason(p.phase), message)
	}
	l, r := p.ledger, p.present()
	switch p.phase { //nolint:exhaustive // The others wait for the same.
	case v1alpha1.PipelineRunning:
		if why := p.silent(); why != "" {
			return compose.Unknown(v1alpha1.TypeProgressing, v1alpha1.ReasonCoordinatorSilent,
				fmt.Sprintf("all tasks of revision %d ran when the JobManager last answered. Now %s", l.Revision, why))
		}
		return compose.True(v1alpha1.TypeProgressing, xpv2.ConditionReason(p.phase), fmt.Sprintf("all tasks of revision %d run", l.Revision))
	case v1alpha1.PipelineRecovering:
		if r.Fault != nil {
			return not("tasks start again from the last checkpoint: " + r.Fault.Message)
		}
		return not("the job starts again from the newest state")
	case v1alpha1.PipelineUpgrading:
		if p.spec.Suspend {
			return not("spec.suspend is set, and the job stops with a savepoint")
		}
		return not(fmt.Sprintf("revision %d starts once the revision before has stopped with a savepoint", l.Revision))
	case v1alpha1.PipelineSuspended:
		return not("spec.suspend is set: remove it to continue from the newest state")
	case v1alpha1.PipelineSucceeded:
		return not("the job has ended, because its input did. To run it again, edit the spec")
	case v1alpha1.PipelineFailed:
		if r.Phase == string(flink.PhaseCanceled) {
			return not("the job was canceled in Flink. To run it again, edit the spec")
		}
		return not("Flink is not started: " + r.Message)
	case v1alpha1.PipelineStarting:
		return not(fmt.Sprintf("pods of revision %d are starting", l.Revision))
	}
	if !p.accepted() {
		return not("nothing runs, because the spec is not accepted: see the condition Accepted")
	}
	return not("objects are being created")
}

// stateSaved reports whether the state is safe.
func (p *pass) stateSaved() xpv2.Condition {
	const t = v1alpha1.TypeStateSaved
	r := p.present()
	switch {
	case r != nil && r.Phase == string(flink.PhaseBlocked):
		return compose.False(t, v1alpha1.ReasonStateBlocked, r.Message)
	case r != nil && r.CheckpointFault != "":
		return compose.False(t, v1alpha1.ReasonCheckpointFailed,
			"the last checkpoint failed: "+r.CheckpointFault+". The one before it serves. See the volume of the state and the log of the JobManager")
	case p.report != nil && p.report.SavepointError != "":
		return compose.False(t, v1alpha1.ReasonSavepointFailed, "the last stop took no savepoint: "+p.report.SavepointError+
			". The last checkpoint served in its place. Correct the cause, or raise spec.flink.savepointWithin")
	case r != nil && r.Checkpoint != nil:
		return compose.True(t, v1alpha1.ReasonCheckpointed, "the last checkpoint is complete")
	case p.report != nil && p.report.Savepoint != nil:
		return compose.True(t, v1alpha1.ReasonCheckpointed, "the last savepoint is complete")
	}
	return compose.Unknown(t, v1alpha1.ReasonNoCheckpoint, "no checkpoint has been completed yet")
}

// within is the time that a revision has to complete a checkpoint.
func (p *pass) within() time.Duration {
	if p.spec.Flink == nil {
		return 0
	}
	return duration(p.spec.Flink.StableWithin)
}

// revisionStable reports whether the revision that the spec asks for runs well.
func (p *pass) revisionStable() xpv2.Condition {
	const t = v1alpha1.TypeRevisionStable
	l := p.ledger
	switch {
	case l.Failed != nil:
		return compose.False(t, v1alpha1.ReasonRolledBack, fmt.Sprintf("revision %d completed no checkpoint within %s, and the spec before it runs again as revision %d: %s. Correct the spec",
			l.Failed.Revision, p.within(), l.Revision, l.Failed.Why))
	case l.Stable:
		return compose.True(t, v1alpha1.ReasonStable, fmt.Sprintf("revision %d has completed a checkpoint", l.Revision))
	case p.stable != nil && p.stableHash != l.Hash && l.Seen != nil && !p.Now.Before(l.Seen.Add(p.within())):
		return compose.Unknown(t, v1alpha1.ReasonTrial, fmt.Sprintf("no checkpoint of revision %d is known after %s, and its JobManager cannot be asked: see the condition PodsHealthy",
			l.Revision, p.within()))
	case l.Seen != nil && !p.Now.Before(l.Seen.Add(p.within())):
		why := "no report"
		if r := p.present(); r != nil {
			why = revisions.Cause(*r)
		}
		return compose.False(t, v1alpha1.ReasonUnstable, fmt.Sprintf("revision %d completed no checkpoint within %s, and there is no revision to go back to: %s",
			l.Revision, p.within(), why))
	}
	return compose.Unknown(t, v1alpha1.ReasonTrial, fmt.Sprintf("revision %d has not completed a checkpoint yet", l.Revision))
}
