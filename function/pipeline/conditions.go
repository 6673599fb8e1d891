// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/pipeline/runs"
)

// conditions of the Pipeline.
func (p *pass) conditions(d *compose.Draft) []xpv2.Condition {
	cs := []xpv2.Condition{check.Accepted(p.problems), d.Composed(p.accepted()), p.podsHealthy(), p.progressing(), p.succeeded()}
	if !p.accepted() {
		return append(cs, compose.Unchanged(p.Composite.Map(), v1alpha1.TypeLineageSent)...)
	}
	return append(cs, p.lineage().Conditions()...)
}

// podsHealthy reports what blocks pods.
func (p *pass) podsHealthy() xpv2.Condition {
	const t = v1alpha1.TypePodsHealthy
	switch blocked := p.blocked(); {
	case p.Kinds[observev1alpha1.JobHistoryGroupVersionKind] == compose.Unavailable:
		return compose.False(t, v1alpha1.ReasonProviderMissing, "provider-capstan, which observes the runs, is not installed: install the package capstan")
	case blocked != nil:
		return compose.False(t, xpv2.ConditionReason(blocked.Reason), blocked.Message)
	case p.report == nil:
		return compose.Unknown(t, v1alpha1.ReasonRunsUnknown, "the provider has not reported the runs yet: if this stays, read its log")
	default:
		return compose.True(t, v1alpha1.ReasonPodsUnblocked, "nothing blocks the pods of active runs")
	}
}

// progressing reports where the Pipeline stands.
func (p *pass) progressing() xpv2.Condition {
	const t = v1alpha1.TypeProgressing
	reason := xpv2.ConditionReason(p.phase)
	not := func(message string) xpv2.Condition { return compose.False(t, reason, message) }
	last := p.last()
	switch p.phase {
	case v1alpha1.PipelineRunning:
		return compose.True(t, reason, fmt.Sprintf("run %s runs", p.running()))
	case v1alpha1.PipelineQueued:
		return not(fmt.Sprintf("run %s waits for a queue to admit it: see the Workload of its Job", p.running()))
	case v1alpha1.PipelineStarting:
		return not(fmt.Sprintf("the pods of run %s are starting", p.running()))
	case v1alpha1.PipelineRecovering:
		return not(fmt.Sprintf("the program of run %s starts again: %s", p.running(), last.Message))
	case v1alpha1.PipelineUpgrading:
		return not("the pods of the last start end, and the edited spec starts once they are gone")
	case v1alpha1.PipelineSuspended:
		return not("spec.suspend is set: remove it to let runs begin")
	case v1alpha1.PipelineWaiting:
		return not("no run has begun yet: see status.nextRun" + p.waits())
	case v1alpha1.PipelineSucceeded:
		return not(fmt.Sprintf("run %s succeeded", last.ID) + p.waits())
	case v1alpha1.PipelineFailed:
		return not(fmt.Sprintf("run %s failed: see the condition Succeeded", last.ID) + p.waits())
	default:
		if !p.accepted() {
			return not("nothing runs, because the spec is not accepted: see the condition Accepted")
		}
		return not("objects are being created")
	}
}

// running is the id of the newest run that is active.
func (p *pass) running() string {
	for _, r := range p.all {
		if !over(r) {
			return r.ID
		}
	}
	return ""
}

// waits says what is requested and has not begun.
func (p *pass) waits() string {
	if !p.accepted() || p.spec.Run == nil || p.spec.Run.ID == p.ledger.Last || p.spec.Suspend {
		return ""
	}
	for _, r := range p.ledger.History {
		if r.Kind == runs.ByID && r.ID == p.spec.Run.ID {
			return fmt.Sprintf(". There was a run %s before: set another spec.run.id", r.ID)
		}
	}
	return ""
}

// succeeded reports how the last run has ended.
func (p *pass) succeeded() xpv2.Condition {
	const t = v1alpha1.TypeSucceeded
	last := p.last()
	switch {
	case last == nil:
		return compose.Unknown(t, v1alpha1.ReasonNoRun, "no run has begun yet")
	case last.State == runs.PhaseSucceeded:
		return compose.True(t, xpv2.ConditionReason(last.State), fmt.Sprintf("run %s succeeded", last.ID))
	case last.State == runs.PhaseFailed:
		reason := p.reason(last.Job)
		return compose.False(t, reason, fmt.Sprintf("run %s failed: %s. %s", last.ID, last.Message, p.remedy(reason)))
	default:
		return compose.Unknown(t, v1alpha1.ReasonNotFinished, fmt.Sprintf("run %s has not ended", last.ID))
	}
}

// reason of a run that failed.
func (p *pass) reason(job string) xpv2.ConditionReason {
	for _, r := range p.ledger.History {
		if r.Job == job {
			return cmp.Or(xpv2.ConditionReason(r.Reason), v1alpha1.ReasonProgramFailed)
		}
	}
	return v1alpha1.ReasonProgramFailed
}

func (p *pass) remedy(reason xpv2.ConditionReason) string {
	again := "set another spec.run.id"
	switch {
	case p.accepted() && p.isStream():
		again = "edit the spec to start again"
	case p.accepted() && p.spec.Schedule != nil:
		again = "wait for the next scheduled run, or set another spec.run.id"
	}
	if reason == v1alpha1.ReasonDeadlineExceeded {
		return "Raise spec.deadline, and " + again
	}
	return "Correct the spec or the image, and " + again
}
