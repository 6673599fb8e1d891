// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Training runs a program that trains a model on one or more workers until it is done. All ranks start together and find each other by
// the variables of torchrun. After a fault they all start again in their pods, from the newest checkpoint. When that does not help, another
// run with other pods follows, or the Training ends with the last lines of its log in the status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=train,categories={capstan,composite}
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Run",type=integer,JSONPath=`.status.run`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.attempt`
// +kubebuilder:printcolumn:name="Workers",type=integer,JSONPath=`.spec.workers`
// +kubebuilder:printcolumn:name="Step",type=integer,JSONPath=`.status.progress.step`
// +kubebuilder:printcolumn:name="Percent",type=integer,JSONPath=`.status.progress.percent`
// +kubebuilder:printcolumn:name="Checkpoint",type=integer,JSONPath=`.status.checkpoint.step`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`,priority=1
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts.processes`,priority=1
// +kubebuilder:printcolumn:name="Goodput",type=integer,JSONPath=`.status.goodputPercent`,priority=1
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.schedule.nextAt`,priority=1
// +kubebuilder:printcolumn:name="ETA",type=string,JSONPath=`.status.progress.eta`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,46}[a-z0-9])?$')",fieldPath=".metadata.name",message="must be at most 48 lower case letters, digits and '-', start with a letter and end with a letter or digit, because the host names of its pods begin with it"
type Training struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to train. A run is never changed: an edit of what reaches the pods ends the run, and the next one begins with the
	// newest checkpoint once the pods are gone. Fields that do not reach the pods take effect at once and restart nothing; each of
	// them says so.
	Spec TrainingSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status TrainingStatus `json:"status,omitempty"`
}

// TrainingList is a list of Trainings.
//
// +kubebuilder:object:root=true
type TrainingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Training `json:"items"`
}

// TrainingSpec is what a Training trains.
//
// +kubebuilder:validation:XValidation:rule="has(self.command) && self.command.size() > 0 || has(self.args) && self.args.size() > 0",fieldPath=".command",message="command or args must have the program: Kubernetes does not report the entrypoint of an image"
// +kubebuilder:validation:XValidation:rule="!has(self.secrets) || self.secrets.all(s, !has(s.rotate) || s.rotate == 'Restartless')",fieldPath=".secrets",message="rotate must be Restartless: no change of a Secret restarts a run"
type TrainingSpec struct {
	// Image with the program, for instance registry.example.org/fraud-train:2.0.0. Use a digest or a tag that never moves, so that
	// every worker runs the same program. It needs no shell. A change begins another run.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[][a-zA-Z0-9._:/@+-]+$')",message="must be an image reference: letters, digits and any of . _ - / : @ +"
	// +kubebuilder:example="registry.example.org/fraud-train:2.0.0"
	// +capstan:form:title="Container image",order=10,group=basic
	Image string `json:"image"`

	// Command is the program that each rank is. The entrypoint of the image is not used. Without command, the first of args is the
	// program. A change begins another run.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +kubebuilder:example={"python","train.py"}
	// +optional
	Command []string `json:"command,omitempty"`

	// Args of the program. A change begins another run.
	//
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +kubebuilder:example={"python","train.py","--epochs=3"}
	// +optional
	// +capstan:form:title="Program and arguments",order=20,group=basic
	Args []string `json:"args,omitempty"`

	// Env holds environment variables of the ranks, beside those that Capstan sets for each rank. A change begins another run.
	//
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []EnvVar `json:"env,omitempty"`

	// Config holds configuration files of the ranks by name. They appear in /etc/algorithm, or where an entry of
	// spec.volumeMounts with the name config says. All files together can hold 786,432 bytes (768 KiB). A change begins
	// another run.
	//
	// +kubebuilder:example={"train.yaml":"learningRate: 0.001"}
	// +optional
	Config Config `json:"config,omitempty"`

	// Secrets of this namespace whose keys are mounted as files. They appear in /etc/secrets/NAME, or where an entry of
	// spec.volumeMounts with the name secret-NAME says. A change of this list begins another run; a change inside a Secret
	// updates the files.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Secrets []MountedSecret `json:"secrets,omitempty"`

	// Resources of one worker. A change begins another run. Without sharedMemory, a tenth of the memory is shared memory, because data
	// loaders need it.
	//
	// +optional
	// +capstan:form:title="Resources of a worker",order=40
	Resources *Resources `json:"resources,omitempty"`

	// Workers is the number of pods that have ranks. A change begins another run. Default: 1.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	// +kubebuilder:example=16
	// +optional
	// +capstan:form:title="Workers",order=30,group=basic
	Workers *int32 `json:"workers,omitempty"`

	// Spares is the number of pods that wait, with all resources of a worker, to replace one at once. With spares, pods
	// prefer nodes of their own, unless their claim is for one node. A change begins another run.
	// Default: 0.
	//
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	// +kubebuilder:example=1
	// +optional
	// +capstan:form:title="Spare workers",order=75,group=advanced
	Spares *int32 `json:"spares,omitempty"`

	// ProcessesPerWorker is the number of ranks in each worker. A change begins another run. Default: resources.gpuCount, or 1 without
	// a GPU.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +kubebuilder:example=8
	// +optional
	ProcessesPerWorker *int32 `json:"processesPerWorker,omitempty"`

	// Checkpoint is where the ranks keep checkpoints. Without it they begin from the start after each fault, and nothing starts again
	// after a stall or a loss that is not a number. A change begins another run.
	//
	// +optional
	// +capstan:form:title="Checkpoints",order=70
	Checkpoint *TrainingCheckpoint `json:"checkpoint,omitempty"`

	// Watch defines how progress is recognised, and what is a fault beside the end of a process. A change begins another run.
	//
	// +optional
	Watch *TrainingWatch `json:"watch,omitempty"`

	// Retry limits what is tried after faults. runs takes effect at once; a change of the other fields begins another run.
	//
	// +optional
	Retry *TrainingRetry `json:"retry,omitempty"`

	// StartWithin is the longest time from the start of a run until all its ranks run, from 1m to 24h. After that the pods are given
	// back, so that two Trainings which each have half of their pods do not block each other, and the next run begins after 1 to 10
	// minutes. The time in a queue does not count. A change takes effect at once and restarts nothing. Default: 30m.
	//
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="must be a time from 1m to 24h, for instance 30m"
	// +kubebuilder:example="30m"
	// +optional
	StartWithin *metav1.Duration `json:"startWithin,omitempty"`

	// Deadline is the longest time that a run can take, with its recoveries and without the time in a queue, from 1m to 8760h. After
	// that the Training has failed. A change begins another run. Default: none.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="must be a time from 1m to 8760h, for instance 72h"
	// +kubebuilder:example="72h"
	// +optional
	// +capstan:form:title="End after",order=80,group=advanced
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// GracePeriod is the time that ranks have to write a checkpoint when their pod has to end, from 1s to 1h. A change begins another
	// run. Default: 30s.
	//
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be a time from 1s to 1h, for instance 2m"
	// +kubebuilder:example="2m"
	// +optional
	GracePeriod *metav1.Duration `json:"gracePeriod,omitempty"`

	// Suspend ends the run and gives its pods back. Without it the next run begins with the newest checkpoint. Default: false.
	//
	// +kubebuilder:example=true
	// +optional
	// +capstan:form:title="Suspend",group=acts
	Suspend bool `json:"suspend,omitempty"`

	// Rerun starts the Training again, once for each id: another run begins with the newest checkpoint. A run that is active ends first.
	// Default: nothing.
	//
	// +optional
	// +capstan:form:title="Run again",group=acts
	Rerun *TrainingRerun `json:"rerun,omitempty"`

	// Schedule begins runs by the clock, for instance to train on new data every week. Then the first run begins at the first time of
	// the schedule, or by rerun. A change takes effect at once. Default: none, and the first run begins at once.
	//
	// +optional
	Schedule *TrainingSchedule `json:"schedule,omitempty"`

	// KeepFinishedFor is how long the Job and its ended pods stay after the end, so that their logs can be read, from 0s to 8760h. The
	// Training itself stays. A change takes effect at once. Default: 168h.
	//
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) <= duration('8760h')",message="must be a time from 0s to 8760h, for instance 168h for a week"
	// +kubebuilder:example="168h"
	// +optional
	KeepFinishedFor *metav1.Duration `json:"keepFinishedFor,omitempty"`

	// OnSuccess is what happens after success. A change takes effect at once.
	//
	// +optional
	OnSuccess *TrainingOnSuccess `json:"onSuccess,omitempty"`

	// Metrics lets Prometheus scrape the pods. With the Prometheus Operator there is a PodMonitor for it. The companion serves the state
	// of the run: phase, step, speed, loss and others. A change takes effect at once and restarts nothing. Default: no PodMonitor.
	//
	// +optional
	Metrics *TrainingMetrics `json:"metrics,omitempty"`

	// Lineage reports each run, and the data that it reads and writes, to the platform's server for OpenLineage. The version of a model that
	// onSuccess registers is an output, too. It never holds up a run, and a change restarts nothing. Default: nothing is reported.
	//
	// +optional
	Lineage *JobLineage `json:"lineage,omitempty"`

	// Queue of Kueue that admits the runs, where the cluster has Kueue. A change begins another run. Default: no queue.
	//
	// +optional
	Queue *JobQueue `json:"queue,omitempty"`

	// VolumeMounts are the folders of the ranks where volumes of spec.pod.volumes appear, and where config and secret-NAME do,
	// when it is not their usual folder. A change begins another run.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=mountPath
	// +optional
	VolumeMounts []PodVolumeMount `json:"volumeMounts,omitempty"`

	// Pod is what the pods have beside the container of the ranks, within what the Pod Security Standard "restricted" and the platform
	// allow. A change begins another run. Default: nothing.
	//
	// +optional
	Pod *JobPod `json:"pod,omitempty"`

	// PodMetadata are labels and annotations of the pods, beside those that Capstan sets. A change begins another run.
	//
	// +optional
	// +capstan:form:hidden
	PodMetadata *PodMetadata `json:"podMetadata,omitempty"`
}

// TrainingRerun starts a Training again.
type TrainingRerun struct {
	// ID of the request. Each id counts once, so that a manifest that is applied again starts nothing.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends, for instance a date"
	// +kubebuilder:example="2026-11-26"
	ID string `json:"id"`
}

// TrainingConcurrency is what happens when a run is active at a time of the schedule.
//
// +kubebuilder:validation:Enum=Forbid;Replace
type TrainingConcurrency string

// What happens when a run is active at a time of the schedule.
const (
	// ConcurrencyForbid leaves the time out.
	ConcurrencyForbid TrainingConcurrency = "Forbid"
	// ConcurrencyReplace ends the active run first.
	ConcurrencyReplace TrainingConcurrency = "Replace"
)

// TrainingBegin is what a scheduled run begins with.
//
// +kubebuilder:validation:Enum=Empty;NewestCheckpoint
type TrainingBegin string

// What a scheduled run begins with.
const (
	// BeginEmpty: without a checkpoint.
	BeginEmpty TrainingBegin = "Empty"
	// BeginNewestCheckpoint: with the newest checkpoint of the run before.
	BeginNewestCheckpoint TrainingBegin = "NewestCheckpoint"
)

// TrainingSchedule begins runs by the clock.
type TrainingSchedule struct {
	// Cron has five fields: minute, hour, day, month and weekday. A time that a change to summer time leaves out begins no run, and one that
	// the change back repeats begins two.
	//
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:example="0 3 * * 1"
	Cron string `json:"cron"`

	// TimeZone of cron: a name of the IANA time zone database. Default: UTC.
	//
	// +kubebuilder:default="UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][-A-Za-z0-9_+/]*$')",message="must be the name of a time zone, for instance Europe/Berlin"
	// +kubebuilder:example="Europe/Berlin"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// Concurrency is what happens when a run is active at a time of the schedule. Forbid leaves the time out, Replace ends the active run
	// first. Default: Forbid.
	//
	// +kubebuilder:default=Forbid
	// +kubebuilder:example=Replace
	// +optional
	Concurrency TrainingConcurrency `json:"concurrency,omitempty"`

	// Begin is what a scheduled run begins with. Empty: without a checkpoint, in a folder of its own below checkpoint.path. Then the folders
	// of scheduled runs before the last one are deleted. NewestCheckpoint: with the newest checkpoint of the run before. Runs that follow a
	// lost one begin with its newest checkpoint in both cases. Default: Empty.
	//
	// +kubebuilder:default=Empty
	// +kubebuilder:example=NewestCheckpoint
	// +optional
	Begin TrainingBegin `json:"begin,omitempty"`

	// StartingDeadline is how late a run can begin when Capstan was stopped at its time, from 1m to 24h. Later it is left out. Default: 1h.
	//
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="must be a time from 1m to 24h, for instance 1h"
	// +kubebuilder:example="6h"
	// +optional
	StartingDeadline *metav1.Duration `json:"startingDeadline,omitempty"`
}

// TrainingOnSuccess is what happens after success.
type TrainingOnSuccess struct {
	// Register the result as a version of a model in the model registry.
	//
	// +optional
	Register *TrainingRegister `json:"register,omitempty"`
}

// TrainingRegister is the version that a run is registered as.
//
// +kubebuilder:validation:XValidation:rule="!has(self.alias) || self.alias.matches('^[A-Za-z0-9_-]+$') && self.alias.lowerAscii() != 'latest' && !self.alias.lowerAscii().matches('^v[0-9]+$')",fieldPath=".alias",message="must be letters, digits, '_' and '-', and not be latest or v with digits, which the registry reserves"
type TrainingRegister struct {
	// Model of the registry that gets another version. It has to exist, for instance by a RegisteredModel.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[^/:\\\\%\"'`\\x00-\\x1f\\x7f]+$"
	// +kubebuilder:example="fraud"
	Model string `json:"model"`

	// Source is the URI of the files that the program has written. {run} stands for the number of the run.
	//
	// +kubebuilder:validation:MaxLength=480
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9+.-]+:/[^\\\\\\\\?#[:space:][:cntrl:]]*$') && !self.startsWith('file:') && !self.contains('..') && !self.contains('%')",message="must be the plain URI of files, for instance s3://models/fraud/{run}: file:, .., ?, #, %, spaces and backslashes are not allowed"
	// +kubebuilder:example="s3://models/fraud/{run}"
	Source string `json:"source"`

	// Alias that moves to the version. An Algorithm that follows the alias then begins a canary with it. Default: no alias moves.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:example="champion"
	// +optional
	Alias string `json:"alias,omitempty"`

	// Config is the kind and name of what has the address of the model registry: ProviderConfig/NAME of this namespace, or
	// ClusterProviderConfig/NAME. Default: the platform's setting, or ClusterProviderConfig/mlflow.
	//
	// +kubebuilder:validation:MaxLength=85
	// +kubebuilder:validation:XValidation:rule="self.matches('^(Cluster)?ProviderConfig/[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$')",message="must be ProviderConfig/NAME or ClusterProviderConfig/NAME, with at most 63 lower case letters, digits, - and . in NAME"
	// +kubebuilder:example="ClusterProviderConfig/mlflow"
	// +optional
	Config string `json:"config,omitempty"`
}
