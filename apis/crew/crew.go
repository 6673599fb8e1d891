// SPDX-License-Identifier: Apache-2.0

// Package crew is the contract between the function that composes the pods of a Training, the companion that is process 1 in each of
// them, and the provider that asks the companions how the run is going: the file plan.json, the answer of /v1/state, exit codes, ports,
// and the environment of the ranks. It imports the standard library only.
//
// A Training is carried out by runs. A run is one Indexed Job: workers, which have ranks, and spares, which have none until they replace
// a worker. The companions of a run are its crew, and the companion of index 0 coordinates it. All ranks start together; each start is an
// attempt, and a fault of any rank ends the attempt for all of them. The pods stay.
package crew

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Where things are in the pods of a run.
const (
	// Container in which the ranks run. The companion is its process 1.
	Container = "worker"
	// BinaryDir has the companion. An init container copies it there.
	BinaryDir = "/capstan/bin"
	// PlanDir has the file PlanFile.
	PlanDir = "/capstan/plan"
	// PlanFile is a Plan as JSON.
	PlanFile = "plan.json"
	// ScratchDir is a folder of the pod that companion and ranks share. It has the progress files.
	ScratchDir = "/capstan/run"

	// Port of the coordinator for its crew: one TCP connection from each companion, lines of JSON.
	Port = 7700
	// StatePort serves StatePath and MetricsPath in each pod.
	StatePort = 7701
	// StatePath answers with a State as JSON. Companions other than the coordinator answer with status 404.
	StatePath = "/v1/state"
	// MetricsPath answers in the text format of Prometheus.
	MetricsPath = "/metrics"
	// MasterPort is where rank 0 of attempt 0 listens for the other ranks. Each attempt uses the next of MasterPorts ports, so that a
	// late process of the attempt before cannot join.
	MasterPort = 29400
	// MasterPorts is the number of ports that attempts share.
	MasterPorts = 100

	// LeaveSeconds is how much longer than Plan.GraceSeconds the companion of a pod that has to go may take: 5 s to hear that the ranks of
	// other pods have stopped, and 5 s for a folder of checkpoints that does not answer. The rest is for a busy node.
	LeaveSeconds = 15
)

// Exit codes of the companion.
const (
	// ExitDone: the run succeeded.
	ExitDone = 0
	// ExitFailed: the run failed for good, and no other pod would change that. The Job ends.
	ExitFailed = 64
	// ExitUnfit: this pod cannot run ranks any more, for instance because its processes do not end. Another pod can.
	ExitUnfit = 65
	// ExitEnded: SIGTERM ended the pod.
	ExitEnded = 143
)

// Environment of a rank, besides the variables of torchrun: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR,
// MASTER_PORT, TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_RUN_ID.
const (
	// EnvRun is the number of the run, from 1: what {run} in spec.onSuccess.register.source stands for.
	EnvRun = "CAPSTAN_RUN"
	// EnvAttempt is the number of the attempt, from 0.
	EnvAttempt = "CAPSTAN_ATTEMPT"
	// EnvResumeFrom is the path or URI of the checkpoint to begin with. Empty: from the beginning.
	EnvResumeFrom = "CAPSTAN_RESUME_FROM"
	// EnvProgress is the file to which the rank may append a line of JSON, a Progress, for each step or checkpoint.
	EnvProgress = "CAPSTAN_PROGRESS"
	// EnvCheckpoints is the folder for checkpoints. Each attempt writes to the same folder.
	EnvCheckpoints = "CAPSTAN_CHECKPOINTS"
	// EnvCheckpointEvery is the time between two checkpoints, in whole seconds. It is set only where Checkpoints.EverySeconds is.
	EnvCheckpointEvery = "CAPSTAN_CHECKPOINT_EVERY"
)

// PlanVersion is the version of Plan that this code knows.
const PlanVersion = 1

// Plan is what the crew of a run follows. Function and companion are upgraded apart: a new field is optional, and its zero value means
// what the file meant before the field existed. Only a change that an old companion must not ignore raises the version.
type Plan struct {
	// Version of the file. Default: 1.
	Version int `json:"version,omitempty"`
	// Training is the name of the Training.
	Training string `json:"training"`
	// Run is the number of the run, from 1.
	Run int `json:"run"`
	// Workers is the number of pods that have ranks, at least 1.
	Workers int `json:"workers"`
	// Spares is the number of pods that wait to replace a worker.
	Spares int `json:"spares,omitempty"`
	// Processes is the number of ranks in each worker. Default: 1.
	Processes int `json:"processes,omitempty"`
	// HostPrefix and Domain make the host names of the pods: index 3 has the host <HostPrefix>-3.<Domain>.
	HostPrefix string `json:"hostPrefix"`
	Domain     string `json:"domain"`
	// ResumeFrom is the checkpoint that the first attempt begins with, when Checkpoints has none: the newest of the run before.
	ResumeFrom string `json:"resumeFrom,omitempty"`
	// Checkpoints says where checkpoints are. Without it no attempt begins again after a rank stalled or had a loss that is not a number.
	Checkpoints *Checkpoints `json:"checkpoints,omitempty"`
	// Watch says how the output of the ranks is understood.
	Watch Watch `json:"watch,omitzero"`
	// Retry limits the attempts.
	Retry Retry `json:"retry,omitzero"`
	// GraceSeconds is how long ranks have between SIGTERM and SIGKILL when the pod has to go. Default: 30.
	GraceSeconds int `json:"graceSeconds,omitempty"`
}

// Checkpoints of a run.
type Checkpoints struct {
	// Dir is the folder of each pod for checkpoints, on a volume that all pods share.
	Dir string `json:"dir"`
	// Cycle is the number of the run whose folder Dir is, below a folder that all pods share: index 0 makes it. 0: Dir itself is shared.
	Cycle int `json:"cycle,omitempty"`
	// Former is the cycle before, 0 for none. Its folder stays. Index 0 deletes the ones of other cycles.
	Former int `json:"former,omitempty"`
	// Complete is a pattern of path.Match, relative to Dir, for a file that exists only in a complete checkpoint. Its first folder is the
	// checkpoint, and the last number in the name of that folder is its step. Empty: only checkpoints that ranks report in EnvProgress
	// count, and the crew records these in Dir.
	Complete string `json:"complete,omitempty"`
	// EverySeconds is how often ranks should write a checkpoint: see EnvCheckpointEvery. None is overdue before ranks have made steps for
	// OverdueAfter times as long. 0: it is left to the program.
	EverySeconds int `json:"everySeconds,omitempty"`
	// Keep is the number of steps whose complete checkpoints stay in Dir. Index 0 removes older ones that it knows from ranks, or that became
	// complete while its ranks ran. 0: nothing is removed.
	Keep int `json:"keep,omitempty"`
}

// OverdueAfter is after how many times Checkpoints.EverySeconds a checkpoint is overdue.
const OverdueAfter = 3

// CyclePrefix begins the names of the folders of a training's cycles. A number follows.
func CyclePrefix(training string) string { return training + "-cycle-" }

// Watch says how the output of the ranks is understood, and what is a fault beside the end of a process.
type Watch struct {
	// Progress is a regular expression for lines of the output, with the named groups step, loss, of and checkpoint, all optional but step.
	// Empty: a number after the word step or loss, as common trainers print it. Progress in the file EnvProgress always counts.
	Progress string `json:"progress,omitempty"`
	// Phases are the longest times without progress.
	Phases Phases `json:"phases,omitzero"`
	// IgnoreNonFinite reports that a loss which is not a number or infinite is only reported.
	IgnoreNonFinite bool `json:"ignoreNonFinite,omitempty"`
	// Faults are patterns of lines that mean a fault, in order: the first that matches decides its class.
	Faults []FaultPattern `json:"faults,omitempty"`
}

// Phases are the longest times without progress in each phase of an attempt, in seconds.
type Phases struct {
	// Setup is the time from the start of the ranks to their first step. Default: 900.
	Setup int `json:"setup,omitempty"`
	// Step is the time between two steps. Default: learned, ten times the 99th percentile of the steps of this attempt, at least 60 and at
	// most 1800; Setup before 20 steps.
	Step int `json:"step,omitempty"`
	// Checkpoint is added to Step after a line that reports a checkpoint. Default: 600.
	Checkpoint int `json:"checkpoint,omitempty"`
	// Finish is the time from the end of the first rank to the end of the last one. Default: 600.
	Finish int `json:"finish,omitempty"`
}

// FaultPattern is a pattern of lines that mean a fault.
type FaultPattern struct {
	// Pattern is a regular expression in the syntax of RE2.
	Pattern string `json:"pattern"`
	// Class of the fault.
	Class Class `json:"class"`
}

// Retry limits the attempts of a run.
type Retry struct {
	// WithoutProgress is the number of attempts in a row that may end without progress, which is a step or a checkpoint beyond the best of
	// the attempts before. Default: 3.
	WithoutProgress int `json:"withoutProgress,omitempty"`
	// Attempts is the number of attempts in all, except those that ended because a pod had to go. Default: 50.
	Attempts int `json:"attempts,omitempty"`
	// LostSeconds is how long a missing member is waited for before the run reports that it is lost. Default: 300.
	LostSeconds int `json:"lostSeconds,omitempty"`
}

// Class is why an attempt ended.
type Class string

// Classes of faults.
const (
	// ClassInfrastructure: a lost pod, a device, the network. Such an attempt counts only for Retry.Attempts when it made progress.
	ClassInfrastructure Class = "Infrastructure"
	// ClassStalled: no rank made progress for longer than the phase allows.
	ClassStalled Class = "Stalled"
	// ClassNonFinite: the loss is not a number, or infinite.
	ClassNonFinite Class = "NonFinite"
	// ClassOutOfMemory: a process was killed because of its memory.
	ClassOutOfMemory Class = "OutOfMemory"
	// ClassUser: the program itself failed, for instance by a wrong argument.
	ClassUser Class = "User"
)

// Phase of a run, as its coordinator sees it.
type Phase string

// Phases of a run.
const (
	// PhaseGathering: not all workers are there yet.
	PhaseGathering Phase = "Gathering"
	// PhaseRunning: all ranks have been started.
	PhaseRunning Phase = "Running"
	// PhaseRecovering: an attempt ended by a fault, and the next has not begun.
	PhaseRecovering Phase = "Recovering"
	// PhaseSucceeded: all ranks ended with exit code 0.
	PhaseSucceeded Phase = "Succeeded"
	// PhaseFailed: the run ended for good without success.
	PhaseFailed Phase = "Failed"
)

// State of a run: the answer of StatePath, and the termination message of index 0 at the end, which keeps at most MaxMessage bytes. It
// comes from a container of the tenant and is believed for that Training only.
type State struct {
	// Version of the state. Default: 1.
	Version int `json:"version,omitempty"`
	// Run is the number of the run.
	Run int `json:"run"`
	// Phase of the run.
	Phase Phase `json:"phase"`
	// Attempt is the number of the present or last attempt, from 0.
	Attempt int `json:"attempt"`
	// Missing are the members that are not connected.
	Missing []Missing `json:"missing,omitempty"`
	// Progress of the ranks.
	Progress Progress `json:"progress,omitzero"`
	// Checkpoint is the newest complete one.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// OverdueSince is since when no checkpoint became complete, once ranks have made steps for OverdueAfter times Checkpoints.EverySeconds
	// meanwhile. Nil: none is overdue.
	OverdueSince *time.Time `json:"overdueSince,omitempty"`
	// Unremoved is why old checkpoints stay that Checkpoints.Keep does not count.
	Unremoved string `json:"unremoved,omitempty"`
	// Restarts counts the attempts after the first.
	Restarts int `json:"restarts,omitempty"`
	// WithoutProgress counts the attempts in a row that ended without progress.
	WithoutProgress int `json:"withoutProgress,omitempty"`
	// LastFault is why the last attempt ended that did not succeed.
	LastFault *Fault `json:"lastFault,omitempty"`
	// GoodputPercent is the share of the time since the first attempt that was spent on steps that were kept.
	GoodputPercent int `json:"goodputPercent,omitempty"`
	// Message says why the run failed, with the last lines of the rank that failed first.
	Message string `json:"message,omitempty"`
}

// MaxMessage is the size of the longest termination message, which is Kubernetes' limit.
const MaxMessage = 4096

// Missing is a member that is not connected.
type Missing struct {
	// Index of the pod.
	Index int `json:"index"`
	// Since when.
	Since time.Time `json:"since"`
}

// Progress of the ranks. Ranks append lines of this form to the file EnvProgress; in a State it is the furthest of all ranks.
type Progress struct {
	// Step that was completed.
	Step int64 `json:"step"`
	// Of is the number of steps in all, if it is known.
	Of int64 `json:"of,omitempty"`
	// Loss of the step as it was printed, for instance 2.31 or nan.
	Loss string `json:"loss,omitempty"`
	// Checkpoint is the path or URI of a checkpoint that is complete as of this line.
	Checkpoint string `json:"checkpoint,omitempty"`
	// StepsPerSecond over the last minutes, in a State only.
	StepsPerSecond float64 `json:"stepsPerSecond,omitempty"`
}

// Checkpoint that is complete.
type Checkpoint struct {
	// Step that it was taken after.
	Step int64 `json:"step"`
	// URI or path.
	URI string `json:"uri"`
	// At is when it became known.
	At time.Time `json:"at"`
}

// Fault that ended an attempt.
type Fault struct {
	// Attempt that it ended.
	Attempt int `json:"attempt"`
	// Class of the fault.
	Class Class `json:"class"`
	// Index of the pod that was first, -1 when unknown.
	Index int `json:"index"`
	// Rank that was first, -1 when the whole pod was lost.
	Rank int `json:"rank"`
	// At is when it became known.
	At time.Time `json:"at"`
	// Message for people.
	Message string `json:"message"`
}

// ParsePlan understands the content of plan.json.
func ParsePlan(raw []byte) (Plan, error) {
	var p Plan
	if err := json.Unmarshal(raw, &p); err != nil {
		return Plan{}, fmt.Errorf("cannot understand the plan of the run: %w", err)
	}
	if p.Version > PlanVersion {
		return Plan{}, fmt.Errorf("the plan of the run has version %d, and this companion knows versions up to %d: use the companion of this release", p.Version, PlanVersion)
	}
	return p, nil
}

// Host of the pod with an index.
func (p Plan) Host(index int) string {
	return p.HostPrefix + "-" + strconv.Itoa(index) + "." + p.Domain
}

// Size is the number of pods.
func (p Plan) Size() int { return p.Workers + p.Spares }
