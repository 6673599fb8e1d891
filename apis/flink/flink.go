// SPDX-License-Identifier: Apache-2.0

// Package flink is the contract between the function that composes the pods of a stream with Apache Flink, the companion that is process 1
// in each of them, and the provider that asks the companion of the JobManager how the stream is going: the file plan.json, the answer of
// /v1/state, ports, and the layout of the state folder. It imports the standard library only.
//
// A stream has one pod with a JobManager, and pods with TaskManagers, which take what work there is. Each change of the pods is a
// revision with a number. State goes from one revision to the next by a savepoint, or by the last checkpoint if there is none.
package flink

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"time"
)

// Where things are in the pods of a stream.
const (
	// BinaryDir has the companion. An init container copies it there.
	BinaryDir = "/capstan/bin"
	// PlanDir has the file PlanFile.
	PlanDir = "/capstan/plan"
	// PlanFile is a Plan as JSON.
	PlanFile = "plan.json"
	// ScratchDir is a folder of the pod for Flink's configuration and files that need not last.
	ScratchDir = "/capstan/run"
	// DefaultHome is where images have Flink, if they do not set FLINK_HOME.
	DefaultHome = "/opt/flink"

	// StatePort of the JobManager's companion serves StatePath and MetricsPath.
	StatePort = 7701
	// StatePath answers with a State as JSON.
	StatePath = "/v1/state"
	// MetricsPath answers in the text format of Prometheus.
	MetricsPath = "/metrics"
	// RestPort of Flink, which listens on the loopback address of the JobManager's pod only, because each client that reaches it can cancel the job.
	RestPort = 8081
	// BlobPort serves jars to TaskManagers.
	BlobPort = 6124
	// FirstRPCPort and RPCPorts are where a JobManager listens for its TaskManagers: each revision uses the next port, so that a late
	// TaskManager with the image of the revision before cannot join.
	FirstRPCPort = 6200
	RPCPorts     = 100
	// DataPort and TaskRPCPort are where TaskManagers listen for one another, and for the JobManager.
	DataPort    = 6121
	TaskRPCPort = 6122

	// LeaveSeconds is how much longer than Plan.SavepointSeconds a pod that has to go may take: 10 s for Flink to end after its savepoint,
	// and 5 s for a TaskManager to hear of it. The rest is for a busy node.
	LeaveSeconds = 30
)

// Files of the state folder.
const (
	// CheckpointsDir has a folder for each revision, and there what Flink writes.
	CheckpointsDir = "checkpoints"
	// SavepointsDir has a folder for each revision, with the savepoints that the companion asked for.
	SavepointsDir = "savepoints"
	// RecordFile is a Record as JSON.
	RecordFile = ".capstan-stream.json"
	// MetadataFile is what Flink writes last into a checkpoint or a savepoint.
	MetadataFile = "_metadata"
)

// PlanVersion is the version of Plan that this code knows.
const PlanVersion = 1

// Plan is what the companions of a revision follow. Function and companion are upgraded apart: a new field is optional, and its zero value
// means what the file meant before the field existed. Only a change that an old companion must not ignore raises the version.
type Plan struct {
	// Version of the file. Default: 1.
	Version int `json:"version,omitempty"`
	// Pipeline is the name of the Pipeline.
	Pipeline string `json:"pipeline"`
	// Revision is the number of the revision, from 1.
	Revision int `json:"revision"`
	// Ignored are revisions whose state is not used, because they did not run well. Nothing of it is deleted.
	Ignored []int `json:"ignored,omitempty"`
	// Continues: a revision before has completed a checkpoint, so that a state folder in which nothing ever ran is the wrong one.
	Continues bool `json:"continues,omitempty"`
	// JobID is the identity of the job, 32 hexadecimal digits. It never changes.
	JobID string `json:"jobID"`
	// JobManager is the host name by which TaskManagers find the JobManager.
	JobManager string `json:"jobManager"`
	// StateDir is the folder for state. All pods share it.
	StateDir string `json:"stateDir"`
	// Home is the folder of Flink in the image. Default: FLINK_HOME, or DefaultHome.
	Home string `json:"home,omitempty"`
	// MainClass of the job. Default: what the jar names.
	MainClass string `json:"mainClass,omitempty"`
	// Jar with the job. Default: what the image has in usrlib below Flink's folder.
	Jar string `json:"jar,omitempty"`
	// Args of the job.
	Args []string `json:"args,omitempty"`
	// Slots of a TaskManager. Default: 1.
	Slots int `json:"slots,omitempty"`
	// MaxParallelism of the job. Default: Flink's.
	MaxParallelism int `json:"maxParallelism,omitempty"`
	// CheckpointSeconds is the time between checkpoints. Default: 60.
	CheckpointSeconds int `json:"checkpointSeconds,omitempty"`
	// SavepointSeconds is how long a savepoint may take when the pod has to go. Default: 300.
	SavepointSeconds int `json:"savepointSeconds,omitempty"`
	// KeepSavepoints is how many of the savepoints that companions took are kept beside the one that the stream started from. Default: 3.
	KeepSavepoints int `json:"keepSavepoints,omitempty"`
	// AllowNonRestoredState lets the job start although some of the state belongs to no operator any more.
	AllowNonRestoredState bool `json:"allowNonRestoredState,omitempty"`
	// Config of Flink by key, such as taskmanager.memory.managed.fraction. Keys that the companion sets itself are refused: see Reserved.
	Config map[string]string `json:"config,omitempty"`
}

// ParsePlan understands the content of plan.json, and fills in defaults.
func ParsePlan(raw []byte) (Plan, error) {
	var p Plan
	if err := json.Unmarshal(raw, &p); err != nil {
		return Plan{}, fmt.Errorf("cannot understand the plan of the stream: %w", err)
	}
	if p.Version > PlanVersion {
		return Plan{}, fmt.Errorf("the plan of the stream has version %d, and this companion knows versions up to %d: use the companion of this release", p.Version, PlanVersion)
	}
	return p.WithDefaults(), nil
}

// WithDefaults is the plan with each default in the place of what is not set.
func (p Plan) WithDefaults() Plan {
	orDefault := func(n *int, most int) {
		if *n == 0 {
			*n = most
		}
	}
	orDefault(&p.Version, PlanVersion)
	orDefault(&p.Slots, 1)
	orDefault(&p.CheckpointSeconds, 60)
	orDefault(&p.SavepointSeconds, 300)
	orDefault(&p.KeepSavepoints, 3)
	return p
}

// RPCPort of the JobManager of a revision.
func (p Plan) RPCPort() int { return FirstRPCPort + p.Revision%RPCPorts }

// Checkpoints is the folder for the checkpoints of a revision.
func (p Plan) Checkpoints() string {
	return path.Join(p.StateDir, CheckpointsDir, RevisionDir(p.Revision))
}

// Savepoints is the folder for the savepoints of a revision.
func (p Plan) Savepoints() string {
	return path.Join(p.StateDir, SavepointsDir, RevisionDir(p.Revision))
}

// RevisionDir is the name of the folder of a revision.
func RevisionDir(revision int) string { return "r" + strconv.Itoa(revision) }

// Phase of a stream, as the companion of its JobManager sees it.
type Phase string

// Phases of a stream.
const (
	// PhaseStarting: Flink starts, or waits for TaskManagers.
	PhaseStarting Phase = "Starting"
	// PhaseRunning: all tasks run.
	PhaseRunning Phase = "Running"
	// PhaseRestarting: tasks failed, and start again from the last checkpoint.
	PhaseRestarting Phase = "Restarting"
	// PhaseStopping: the pod has to go, and a savepoint is taken.
	PhaseStopping Phase = "Stopping"
	// PhaseStopped: the job has stopped, and the pod goes.
	PhaseStopped Phase = "Stopped"
	// PhaseFinished: the job ended by itself, because its input ended. It is not started again.
	PhaseFinished Phase = "Finished"
	// PhaseCanceled: a person canceled the job in Flink. It is not started again until the next revision.
	PhaseCanceled Phase = "Canceled"
	// PhaseBlocked: Flink is not started, and Message says why, for instance because state that was there is gone.
	PhaseBlocked Phase = "Blocked"
)

// State of a stream: the answer of StatePath. It comes from a container of the tenant and is believed for that Pipeline only.
type State struct {
	// Version of the state. Default: 1.
	Version int `json:"version,omitempty"`
	// Revision is the number of the revision.
	Revision int `json:"revision"`
	// Phase of the stream.
	Phase Phase `json:"phase"`
	// From is the state that Flink started from. Absent: from the beginning.
	From *Saved `json:"from,omitempty"`
	// RunningSince is when all tasks began to run the last time.
	RunningSince *time.Time `json:"runningSince,omitempty"`
	// Checkpoint is the newest one of this revision that is complete.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// CheckpointFault is why the last checkpoint failed, if none was completed since.
	CheckpointFault string `json:"checkpointFault,omitempty"`
	// Restarts counts how often this revision restarted, by Flink or as a process.
	Restarts int `json:"restarts,omitempty"`
	// Parallelism of the job: the highest of its operators.
	Parallelism int `json:"parallelism,omitempty"`
	// TaskManagers that are registered.
	TaskManagers int `json:"taskManagers,omitempty"`
	// Lag is the number of records that sources have not read yet. Absent when no source reports it.
	Lag *int64 `json:"lag,omitempty"`
	// Savepoint is the newest one that a companion took, of any revision that is not ignored.
	Savepoint *Saved `json:"savepoint,omitempty"`
	// LastStop is how the JobManager before this one ended.
	LastStop *Stop `json:"lastStop,omitempty"`
	// Fault is why tasks failed last, or Flink did not start.
	Fault *Fault `json:"fault,omitempty"`
	// Message for people, when the phase needs one.
	Message string `json:"message,omitempty"`
}

// Saved is a state that is complete: a checkpoint or a savepoint.
type Saved struct {
	// Path of its folder.
	Path string `json:"path"`
	// ID is its number, which grows through all revisions.
	ID int64 `json:"id"`
	// Revision that wrote it.
	Revision int `json:"revision"`
	// Savepoint is true for a savepoint, false for a checkpoint.
	Savepoint bool `json:"savepoint,omitempty"`
	// At is when it became complete.
	At time.Time `json:"at"`
}

// Checkpoint that is complete.
type Checkpoint struct {
	// ID is its number.
	ID int64 `json:"id"`
	// At is when it became complete.
	At time.Time `json:"at"`
	// Bytes of state.
	Bytes int64 `json:"bytes"`
	// Millis it took.
	Millis int64 `json:"millis"`
}

// Fault of a stream.
type Fault struct {
	// At is when it became known.
	At time.Time `json:"at"`
	// Message for people, at most MaxMessage bytes.
	Message string `json:"message"`
}

// MaxMessage is the length of the longest message of a Fault or a Stop.
const MaxMessage = 1024

// Stop is how a JobManager ended that had to go.
type Stop struct {
	// Revision of it.
	Revision int `json:"revision"`
	// At is when it ended.
	At time.Time `json:"at"`
	// Savepoint it took. Absent: see Error.
	Savepoint *Saved `json:"savepoint,omitempty"`
	// Error is why it took no savepoint. The last checkpoint serves in its place.
	Error string `json:"error,omitempty"`
}

// Record is what companions remember in the state folder.
type Record struct {
	// Version of the record. Default: 1.
	Version int `json:"version,omitempty"`
	// Pipeline is the name of the one whose state is in the folder. Another one does not start with it.
	Pipeline string `json:"pipeline,omitempty"`
	// LastStop is how the last JobManager ended that had to go.
	LastStop *Stop `json:"lastStop,omitempty"`
	// Known is the newest state that a companion started from or saw. Without any state in the folder the stream does not begin again.
	Known *Saved `json:"known,omitempty"`
	// Ended is set once the job ended by itself or was canceled.
	Ended *Ended `json:"ended,omitempty"`
}

// Ended is the end of a job.
type Ended struct {
	// Revision that ended.
	Revision int `json:"revision"`
	// Phase is Finished or Canceled.
	Phase Phase `json:"phase"`
	// At is when.
	At time.Time `json:"at"`
}
