// SPDX-License-Identifier: Apache-2.0

package training

import (
	"encoding/json"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/training/runs"
)

// How closely the status follows the ranks while nothing else changes. Each write of it wakes the Training up.
const (
	percentSteps    = 5
	progressEvery   = 10 * time.Minute
	checkpointEvery = 5 * time.Minute
)

// phaseNow in one word.
func (p *pass) phaseNow() v1alpha1.TrainingPhase {
	switch p.ledger.State {
	case runs.Succeeded:
		return v1alpha1.TrainingSucceeded
	case runs.Failed:
		return v1alpha1.TrainingFailed
	case runs.Suspended:
		return v1alpha1.TrainingSuspended
	case runs.Ending:
		if p.ledger.Next == runs.OutcomeSuspended {
			return v1alpha1.TrainingSuspended
		}
		return v1alpha1.TrainingRestarting
	case runs.Active:
		return p.phaseOfRun()
	default:
		if p.schedule != nil && p.ledger.Run == 0 {
			return v1alpha1.TrainingScheduled
		}
		return v1alpha1.TrainingPending
	}
}

// phaseOfRun is the phase while the Job of a run exists or is about to.
func (p *pass) phaseOfRun() v1alpha1.TrainingPhase {
	j, exists := p.jobs[p.ledger.Run]
	reported := p.present()
	switch {
	case !exists:
		return v1alpha1.TrainingStarting
	case j.Suspended:
		return v1alpha1.TrainingQueued
	case j.Complete, j.Failed, p.reports(crew.PhaseSucceeded), p.reports(crew.PhaseFailed):
		return v1alpha1.TrainingEnding
	case reported == nil, !p.ledger.Began:
		return v1alpha1.TrainingStarting
	case reported.Phase == string(crew.PhaseRecovering), reported.Phase == string(crew.PhaseGathering):
		return v1alpha1.TrainingRecovering
	default:
		return v1alpha1.TrainingRunning
	}
}

// present is what is reported about the run of the ledger that is decided, or nil.
func (p *pass) present() *observev1alpha1.RunObservation {
	if p.report == nil || p.report.Number != p.ledger.Run {
		return nil
	}
	return p.report
}

// reports whether the provider has seen the crew in a phase.
func (p *pass) reports(phase crew.Phase) bool {
	r := p.present()
	return r != nil && r.Phase == string(phase)
}

// silent is why the coordinator does not answer, or empty.
func (p *pass) silent() string {
	if r := p.present(); r != nil {
		return r.Silent
	}
	return ""
}

// status is complete: Crossplane removes what is left out.
func (p *pass) status(d *compose.Draft) v1alpha1.TrainingStatus {
	l, before := p.ledger, p.before()
	st := v1alpha1.TrainingStatus{
		Phase: p.phase, Run: l.Run, StartedAt: instant(l.Started), Message: l.Message, Ledger: l.Text(), Withheld: d.Withheld(),
		Checkpoint: before.Checkpoint, Schedule: p.scheduleStatus(),
	}
	if p.over() {
		st.FinishedAt = instant(l.Ended)
	}
	if _, exists := p.jobs[l.Run]; exists || l.State == runs.Active {
		st.Job = p.Job(l.Run)
	}
	if r := p.register; r.version != "" {
		st.Model = &v1alpha1.TrainingModel{Name: p.registerSpec().Model, Version: r.version, Run: l.Run}
	} else {
		st.Model = before.Model
	}
	for _, r := range l.History {
		st.History = append(st.History, v1alpha1.TrainingRun{
			Run: r.Run, Outcome: string(r.Outcome), ScheduledAt: instant(r.For), StartedAt: instant(r.Started), EndedAt: instant(&r.Ended), Step: r.Step, Message: r.Message,
		})
	}
	r := p.present()
	if r == nil {
		if before.Run == l.Run {
			st.Attempt, st.Progress, st.Restarts, st.LastFault, st.GoodputPercent = before.Attempt, before.Progress, before.Restarts, before.LastFault, before.GoodputPercent
		}
		return st
	}
	st.Attempt, st.GoodputPercent = r.Attempt, r.GoodputPercent
	st.Restarts = &v1alpha1.TrainingRestarts{Processes: r.Restarts, Pods: r.PodRestarts, Runs: l.Lost, WithoutProgress: r.WithoutProgress}
	if f := r.LastFault; f != nil {
		st.LastFault = &v1alpha1.TrainingFault{Class: f.Class, Attempt: f.Attempt, Index: f.Index, Rank: f.Rank, Node: f.Node, At: &f.At, Message: f.Message}
	}
	calm := before.Run == l.Run && before.Phase == st.Phase && deref(before.Attempt) == deref(st.Attempt)
	st.Progress = progress(r.Progress)
	if calm && alike(before.Progress, st.Progress) {
		st.Progress, st.GoodputPercent = before.Progress, before.GoodputPercent
	}
	if c := r.Checkpoint; c != nil && (!calm || !recent(before.Checkpoint, c)) {
		st.Checkpoint = &v1alpha1.TrainingCheckpointStatus{Step: c.Step, URI: c.URI, At: &c.At}
	}
	return st
}

// before is the status as it was written. What cannot be read is empty: only this function writes it.
func (p *pass) before() v1alpha1.TrainingStatus {
	var st v1alpha1.TrainingStatus
	raw, err := json.Marshal(compose.Map(p.Composite.Map(), "status"))
	if err != nil || json.Unmarshal(raw, &st) != nil {
		return v1alpha1.TrainingStatus{}
	}
	return st
}

// progress as the status has it.
func progress(r *observev1alpha1.RunProgress) *v1alpha1.TrainingProgress {
	if r == nil {
		return nil
	}
	out := &v1alpha1.TrainingProgress{Step: r.Step, Of: r.Of, Loss: r.Loss, At: r.At}
	if r.StepsPerMinute > 0 {
		out.StepsPerMinute = new(math.Round(r.StepsPerMinute*100) / 100)
	}
	if r.Of > 0 {
		out.Percent = new(int32(min(100, r.Step*100/r.Of))) //nolint:gosec // At most 100.
	}
	if r.Of > r.Step && r.StepsPerMinute > 0 && r.At != nil {
		left := time.Duration(float64(r.Of-r.Step) / r.StepsPerMinute * float64(time.Minute))
		out.ETA = &metav1.Time{Time: r.At.Add(left).UTC().Truncate(time.Minute)}
	}
	return out
}

// alike reports whether progress is so near to what the status has that it needs no write.
func alike(before, now *v1alpha1.TrainingProgress) bool {
	switch {
	case before == nil || now == nil:
		return before == now
	case before.Percent != nil && now.Percent != nil && *before.Percent/percentSteps != *now.Percent/percentSteps:
		return false
	case before.At == nil || now.At == nil:
		return now.Step == before.Step
	default:
		return now.At.Sub(before.At.Time) < progressEvery
	}
}

// recent reports whether the status has a checkpoint that is not much older.
func recent(before *v1alpha1.TrainingCheckpointStatus, now *observev1alpha1.RunCheckpoint) bool {
	return before != nil && before.At != nil && now.Step >= before.Step && now.At.Sub(before.At.Time) < checkpointEvery
}

func instant(at *time.Time) *metav1.Time {
	if at == nil {
		return nil
	}
	return &metav1.Time{Time: *at}
}
