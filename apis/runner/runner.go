// SPDX-License-Identifier: Apache-2.0

// Package runner is the contract of function, provider and companion for the pods of a Pipeline. The companion is process 1 of each pod. It
// starts the processes of the role that the pod has, decides by rules what follows the failure of the main one, and reports it.
//
// The plan is an annotation of the pod's template, and a file by the downward API. So a Job or a CronJob has all that its runs need,
// also when other objects are gone.
package runner

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Labels and annotations of the pods, besides the labels that Kubernetes gives pods of a Job.
const (
	// LabelPipeline has the name of the Pipeline. The provider watches only Jobs and pods that have it.
	LabelPipeline = "capstan.dev/pipeline"
	// LabelRun has the id of a run that spec.run requests, or the number of a start of a stream. Scheduled runs have none.
	LabelRun = "capstan.dev/run"
	// AnnotationPlan has a Plan as JSON.
	AnnotationPlan = "capstan.dev/plan"
)

// Where things are in the pods.
const (
	// Container in which the companion is process 1.
	Container = "program"
	// BinaryDir has the companion. An init container copies it there.
	BinaryDir = "/capstan/bin"
	// PlanDir has the file PlanFile, and JobFile with the name of the Job.
	PlanDir  = "/capstan/plan"
	PlanFile = "plan.json"
	// ScratchDir is a folder of the pod for files of the engine.
	ScratchDir = "/capstan/run"
	// StatePort serves StatePath in each pod.
	StatePort = 7701
	// StatePath answers with a State as JSON.
	StatePath = "/v1/state"
	// LeaveSeconds is how much longer than Plan.GraceSeconds the companion of a pod that has to go may take.
	LeaveSeconds = 15
)

// Exit codes of the companion.
const (
	// ExitDone: the main process succeeded.
	ExitDone = 0
	// ExitFailed: the run failed for good, and no other pod would change that. The Job ends.
	ExitFailed = 64
	// ExitUnfit: this pod cannot run the program, for instance because its processes do not end. Another pod can.
	ExitUnfit = 65
	// ExitMemory: a rule asks for more memory, which only another Job has. The Job ends.
	ExitMemory = 66
	// ExitEnded: SIGTERM ended the pod.
	ExitEnded = 143
)

// Environment of the processes. Commands and environments of the plan can use them as $(NAME).
const (
	// EnvJob is the name of the Job, empty for pods that are of none.
	EnvJob = "CAPSTAN_JOB"
	// EnvRun is the id of the run.
	EnvRun = "CAPSTAN_RUN"
	// EnvScheduledAt is the time that a scheduled run is of, in RFC 3339, empty for other runs.
	EnvScheduledAt = "CAPSTAN_SCHEDULED_AT"
	// EnvAttempt is the number of the attempt in this pod, from 0.
	EnvAttempt = "CAPSTAN_ATTEMPT"
	// EnvHost is the host name of this pod, with its domain.
	EnvHost = "CAPSTAN_HOST"
	// EnvLeader is the host name of the pod of index 0.
	EnvLeader = "CAPSTAN_LEADER"
)

// PlanVersion is the version of Plan that this code knows.
const PlanVersion = 1

// Plan is what the companion of a pod follows. Function and companion are upgraded apart: a new field is optional, and its zero value
// means what the file meant before the field existed. Only a change that an old companion must not ignore raises the version.
type Plan struct {
	// Version of the plan. Default: 1.
	Version int `json:"version,omitempty"`
	// Pipeline is the name of the Pipeline.
	Pipeline string `json:"pipeline"`
	// Run is the id of the run. Empty for scheduled runs: the name of their Job ends with the time.
	Run string `json:"run,omitempty"`
	// Domain of the host names of the pods. Empty for pods that have none.
	Domain string `json:"domain,omitempty"`
	// Roles of the pods.
	Roles []Role `json:"roles"`
	// Retry says what follows the failure of a main process.
	Retry Retry `json:"retry,omitzero"`
	// GraceSeconds is how long processes have between SIGTERM and SIGKILL when the pod has to go. Default: 30.
	GraceSeconds int `json:"graceSeconds,omitempty"`
}

// A Role is what a pod does.
type Role struct {
	// Name of the role, for people: Program, Driver, Worker, JobManager, TaskManager.
	Name string `json:"name"`
	// Indexes of the pods that have the role. Empty: all that no other role names.
	Indexes []int `json:"indexes,omitempty"`
	// Beside are processes that run beside the main one. One that ends starts again after a second.
	Beside []Process `json:"beside,omitempty"`
	// Main process. Its end is the end of an attempt.
	Main Process `json:"main"`
	// Serves: the main process has no success. When it ends, it starts again by the rules.
	Serves bool `json:"serves,omitempty"`
}

// A Process of a role.
type Process struct {
	// Name for people.
	Name string `json:"name"`
	// Command with its arguments. $(NAME) stands for a variable of the environment, and $$ for a dollar.
	Command []string `json:"command,omitempty"`
	// Args: the arguments of the companion's own command line follow the command.
	Args bool `json:"args,omitempty"`
	// Env are variables of the process beside the variables of the container.
	Env map[string]string `json:"env,omitempty"`
}

// Retry says what follows a failure.
type Retry struct {
	// Attempts that may fail in a row, over all failures without a rule that has attempts of its own. Default: 3.
	Attempts int `json:"attempts,omitempty"`
	// Backoff between two attempts.
	Backoff Backoff `json:"backoff,omitzero"`
	// ResetSeconds is how long the main process has to run until failures before count no more. Default: 3600.
	ResetSeconds float64 `json:"resetSeconds,omitempty"`
	// Rules in order: the first that matches counts.
	Rules []Rule `json:"rules,omitempty"`
}

// Backoff between two attempts: FromSeconds, then Factor times the last one, at most ToSeconds.
type Backoff struct {
	FromSeconds   float64 `json:"fromSeconds"`
	ToSeconds     float64 `json:"toSeconds"`
	Factor        float64 `json:"factor"`
	JitterPercent int     `json:"jitterPercent"`
}

// A Rule for failures for which all its conditions hold.
type Rule struct {
	// ExitCodes, Pattern and Class are the conditions that are set.
	ExitCodes []int  `json:"exitCodes,omitempty"`
	Pattern   string `json:"pattern,omitempty"`
	Class     Class  `json:"class,omitempty"`
	// Do is what follows.
	Do Action `json:"do"`
	// Attempts that may fail in a row by this rule. Default: they count together with Retry.Attempts.
	Attempts int `json:"attempts,omitempty"`
	// Backoff in place of Retry.Backoff.
	Backoff *Backoff `json:"backoff,omitempty"`
}

// Action after a failure.
type Action string

// Actions after a failure.
const (
	// ActionRetry starts the processes again in the pod.
	ActionRetry Action = "Retry"
	// ActionFail ends the run.
	ActionFail Action = "Fail"
	// ActionMemory ends the Job, so that another one can have more memory.
	ActionMemory Action = "RetryWithMemory"
)

// Class of a failure.
type Class string

// Classes of failures.
const (
	// ClassUser: the program itself failed.
	ClassUser Class = "User"
	// ClassOutOfMemory: the program was killed for its memory, or says that it has not enough.
	ClassOutOfMemory Class = "OutOfMemory"
	// ClassInfrastructure: a node, the network or a disk.
	ClassInfrastructure Class = "Infrastructure"
)

// Phase of a pod.
type Phase string

// Phases of a pod.
const (
	// PhaseRunning: the main process runs.
	PhaseRunning Phase = "Running"
	// PhaseRecovering: it failed, and starts again.
	PhaseRecovering Phase = "Recovering"
	// PhaseEnding: the pod has to go, and its processes end.
	PhaseEnding Phase = "Ending"
	// PhaseSucceeded: it ended with exit code 0.
	PhaseSucceeded Phase = "Succeeded"
	// PhaseFailed: it ended for good without success.
	PhaseFailed Phase = "Failed"
)

// State of a pod: the answer of StatePath, and its termination message, which keeps at most MaxMessage bytes. It comes from a container of
// the tenant and is believed for that Pipeline only.
type State struct {
	// Version of the state. Default: 1.
	Version int `json:"version,omitempty"`
	// Role of the pod.
	Role string `json:"role"`
	// Phase of the pod.
	Phase Phase `json:"phase"`
	// Attempts that have begun in this pod.
	Attempts int `json:"attempts"`
	// Since is when the phase began.
	Since time.Time `json:"since"`
	// LastFailure of the main process.
	LastFailure *Failure `json:"lastFailure,omitempty"`
}

// MaxMessage is the size of the longest termination message, which is Kubernetes' limit.
const MaxMessage = 4096

// A Failure of the main process.
type Failure struct {
	// Class of the failure.
	Class Class `json:"class"`
	// ExitCode, or -1 for a process that a signal ended or that did not start.
	ExitCode int `json:"exitCode"`
	// Action that follows.
	Action Action `json:"action"`
	// At is when it ended.
	At time.Time `json:"at"`
	// Message for people: what happened, and why the run ends if it does.
	Message string `json:"message"`
	// Lines that the process wrote last.
	Lines string `json:"lines,omitempty"`
}

// ParsePlan understands a plan.
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

// Role of the pod with an index.
func (p Plan) Role(index int) (Role, bool) {
	for _, r := range p.Roles {
		if slices.Contains(r.Indexes, index) {
			return r, true
		}
	}
	i := slices.IndexFunc(p.Roles, func(r Role) bool { return len(r.Indexes) == 0 })
	if i < 0 {
		return Role{}, false
	}
	return p.Roles[i], true
}
