// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Pipeline runs a program that moves or transforms data: at the times of a schedule, once for each id of a run, or without end as a
// stream. The program is a container, a Spark application or a Flink job. Scheduled runs need neither Crossplane nor Capstan to run.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=pipe,categories={capstan,composite}
// +kubebuilder:printcolumn:name="Engine",type=string,JSONPath=`.spec.engine`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule.cron`
// +kubebuilder:printcolumn:name="Last-Run",type=string,JSONPath=`.status.lastRun.id`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.lastRun.state`
// +kubebuilder:printcolumn:name="Took",type=string,JSONPath=`.status.lastRun.took`
// +kubebuilder:printcolumn:name="Next-Run",type=string,JSONPath=`.status.nextRun`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`,priority=1
// +kubebuilder:printcolumn:name="Attempts",type=integer,JSONPath=`.status.lastRun.attempts`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",fieldPath=".metadata.name",message="must be at most 40 lower case letters, digits and '-', start with a letter and end with a letter or digit, because the names of its runs begin with it"
type Pipeline struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to run, and when. A run that has begun is never changed: an edit counts from the next run on. A stream ends, and
	// starts again with the edited spec.
	Spec PipelineSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status PipelineStatus `json:"status,omitempty"`
}

// PipelineList is a list of Pipelines.
//
// +kubebuilder:object:root=true
type PipelineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Pipeline `json:"items"`
}

// PipelineEngine is what runs the program.
//
// +kubebuilder:validation:Enum=Container;Spark;Flink
type PipelineEngine string

// Engines of a Pipeline.
const (
	// PipelineContainer: the program is one container.
	PipelineContainer PipelineEngine = "Container"
	// PipelineSpark: the program is a Spark application with a cluster of its own.
	PipelineSpark PipelineEngine = "Spark"
	// PipelineFlink: the program is a Flink job with a cluster of its own.
	PipelineFlink PipelineEngine = "Flink"
)

// PipelineConcurrency is what a run does while an earlier one is active.
//
// +kubebuilder:validation:Enum=Forbid;Allow;Replace
type PipelineConcurrency string

// What a run does while an earlier one is active.
const (
	// PipelineForbid: a scheduled run is left out, and a run by id waits.
	PipelineForbid PipelineConcurrency = "Forbid"
	// PipelineAllow: both run.
	PipelineAllow PipelineConcurrency = "Allow"
	// PipelineReplace: the earlier run ends.
	PipelineReplace PipelineConcurrency = "Replace"
)

// PipelineSpec is what a Pipeline runs.
//
// +kubebuilder:validation:XValidation:rule="has(self.command) && self.command.size() > 0 || has(self.args) && self.args.size() > 0 || self.engine != 'Container'",fieldPath=".command",message="command or args must have the program: Kubernetes does not report the entrypoint of an image"
// +kubebuilder:validation:XValidation:rule="self.engine == 'Spark' || !has(self.spark)",fieldPath=".spark",message="needs engine: Spark"
// +kubebuilder:validation:XValidation:rule="self.engine == 'Flink' ? has(self.flink) : !has(self.flink)",fieldPath=".flink",message="is required with engine: Flink, and needs it"
// +kubebuilder:validation:XValidation:rule="self.engine == 'Container' || !has(self.command) || self.command.size() == 0",fieldPath=".command",message="needs engine: Container: the engine is the program, and args are its arguments"
// +kubebuilder:validation:XValidation:rule="self.engine != 'Flink' || !has(self.schedule) && !has(self.run)",fieldPath=".engine",message="Flink runs streams only: remove schedule and run"
// +kubebuilder:validation:XValidation:rule="(has(self.schedule) || has(self.run)) == (has(oldSelf.schedule) || has(oldSelf.run))",message="a Pipeline with a schedule or run does not become a stream, nor a stream one with them: create another Pipeline"
// +kubebuilder:validation:XValidation:rule="!has(self.deadline) || has(self.schedule) || has(self.run)",fieldPath=".deadline",message="needs schedule or run: a stream has no end"
// +kubebuilder:validation:XValidation:rule="self.engine != 'Flink' || !has(self.retry)",fieldPath=".retry",message="has no effect with engine: Flink, which starts tasks again itself: remove it"
// +kubebuilder:validation:XValidation:rule="self.engine != 'Flink' || !has(self.queue)",fieldPath=".queue",message="has no effect with engine: Flink, whose pods are of no Job: remove it"
// +kubebuilder:validation:XValidation:rule="self.engine != 'Flink' || !has(self.gracePeriod) || duration(self.gracePeriod) == duration('30s')",fieldPath=".gracePeriod",message="has no effect with engine: Flink, whose pods have flink.savepointWithin to end: remove it"
// +kubebuilder:validation:XValidation:rule="self.engine != 'Flink' || !has(self.keepFinishedFor) || duration(self.keepFinishedFor) == duration('168h')",fieldPath=".keepFinishedFor",message="has no effect with engine: Flink, which has no runs: remove it"
// +kubebuilder:validation:XValidation:rule="self.engine != 'Flink' || !has(self.history) || self.history == 10",fieldPath=".history",message="has no effect with engine: Flink, which has no runs: remove it"
// +kubebuilder:validation:XValidation:rule="has(self.schedule) || has(self.run) || !has(self.concurrency) || self.concurrency == 'Forbid'",fieldPath=".concurrency",message="needs schedule or run: a stream is one run"
// +kubebuilder:validation:XValidation:rule="!has(self.metrics) || has(self.metrics.port) || self.engine == 'Flink'",fieldPath=".metrics",message="needs port: with the engines Container and Spark only your program has metrics"
// +kubebuilder:validation:XValidation:rule="!has(self.secrets) || self.secrets.all(s, !has(s.rotate) || s.rotate == 'Restartless')",fieldPath=".secrets",message="rotate must be Restartless: no change of a Secret restarts a run"
type PipelineSpec struct {
	// Engine that runs the program: Container, Spark or Flink. Default: Container.
	//
	// +kubebuilder:default=Container
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: create another Pipeline"
	// +kubebuilder:example=Spark
	// +capstan:form:title="Engine",order=10,group=basic
	// +optional
	Engine PipelineEngine `json:"engine,omitempty"`

	// Image with the program, for instance registry.example.org/features:1.4.0. Use a digest or a tag that never moves, so that every
	// run and every executor runs the same program.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[][a-zA-Z0-9._:/@+-]+$')",message="must be an image reference: letters, digits and any of . _ - / : @ +"
	// +kubebuilder:example="registry.example.org/features:1.4.0"
	// +capstan:form:title="Container image",order=20,group=basic
	Image string `json:"image"`

	// Command is the program of the engine Container. The entrypoint of the image is not used. Without command, the first of args is
	// the program.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +kubebuilder:example={"python","features.py"}
	// +optional
	Command []string `json:"command,omitempty"`

	// Args of the program. With the engine Spark, the first one is the application: a Python file, or a jar with spark.mainClass.
	//
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +kubebuilder:example={"features.py","--days=1"}
	// +capstan:form:title="Program and arguments",order=30,group=basic
	// +optional
	Args []string `json:"args,omitempty"`

	// Env holds environment variables of the program, beside those that Capstan sets.
	//
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []EnvVar `json:"env,omitempty"`

	// Config holds configuration files of the program by name. They appear in /etc/algorithm, or where an entry of spec.volumeMounts with
	// the name config says. All files together can hold 786,432 bytes (768 KiB).
	//
	// +kubebuilder:example={"features.yaml":"window: 30d"}
	// +optional
	Config Config `json:"config,omitempty"`

	// Secrets of this namespace whose keys are mounted as files. They appear in /etc/secrets/NAME, or where an entry of spec.volumeMounts
	// with the name secret-NAME says. A change inside a Secret updates the files.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Secrets []MountedSecret `json:"secrets,omitempty"`

	// Resources of the program. With the engine Spark each pod has them, the pod of driver and master, and the pod of each executor;
	// with Flink the JobManager has them. Default: the platform's settings for Algorithms, and 2Gi of memory for Spark and Flink.
	//
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// Schedule of runs. Kubernetes starts them, also while Crossplane and Capstan are stopped. Default: none.
	//
	// +optional
	Schedule *PipelineSchedule `json:"schedule,omitempty"`

	// Run asks for one run, once for each id. With a schedule it is a run beside the scheduled ones. Without schedule and run the
	// Pipeline is a stream, which has no end. Default: none.
	//
	// +optional
	Run *PipelineRunRequest `json:"run,omitempty"`

	// Concurrency is what a run does while an earlier one is active. Forbid: a scheduled run is left out, and a run by id waits. Allow:
	// both run. Replace: the earlier run ends. Runs by id and scheduled runs do not count for each other. Default: Forbid.
	//
	// +kubebuilder:default=Forbid
	// +kubebuilder:example=Replace
	// +optional
	Concurrency PipelineConcurrency `json:"concurrency,omitempty"`

	// Retry defines which failures are tried again, how often, and after which time.
	//
	// +optional
	Retry *PipelineRetry `json:"retry,omitempty"`

	// Spark application. It needs the engine Spark.
	//
	// +optional
	Spark *PipelineSparkSpec `json:"spark,omitempty"`

	// Flink job. The engine Flink needs it.
	//
	// +optional
	Flink *PipelineFlinkSpec `json:"flink,omitempty"`

	// Suspend lets no other run begin, and ends a stream. Runs that are active end by themselves. Default: false.
	//
	// +kubebuilder:example=true
	// +capstan:form:title="Suspend",group=acts
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Deadline is the longest time that a run can take, with all its attempts, from 1m to 8760h. After that the run has failed. Default:
	// none.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="must be a time from 1m to 8760h, for instance 6h"
	// +kubebuilder:example="6h"
	// +capstan:form:title="End after",order=70,group=advanced
	// +optional
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// GracePeriod is the time that the program has to end after SIGTERM, from 1s to 1h. Default: 30s.
	//
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be a time from 1s to 1h, for instance 2m"
	// +kubebuilder:example="2m"
	// +optional
	GracePeriod *metav1.Duration `json:"gracePeriod,omitempty"`

	// KeepFinishedFor is how long the Jobs of runs that have ended stay with their pods, so that their logs can be read, from 0s to
	// 8760h. The Jobs of scheduled runs stay for a minute at least. What the status has of a run stays. Default: 168h.
	//
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('0s') && duration(self) <= duration('8760h')",message="must be a time from 0s to 8760h, for instance 168h"
	// +kubebuilder:example="168h"
	// +optional
	KeepFinishedFor *metav1.Duration `json:"keepFinishedFor,omitempty"`

	// History is how many runs that have ended the status has. Kubernetes keeps the Jobs of as many scheduled runs that succeeded, and
	// as many that failed. Default: 10.
	//
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	// +kubebuilder:example=20
	// +optional
	History *int32 `json:"history,omitempty"`

	// Queue of Kueue that admits the runs, where the cluster has Kueue. Default: no queue.
	//
	// +optional
	Queue *JobQueue `json:"queue,omitempty"`

	// Metrics has Prometheus scrape what your program serves, and with Flink the state of the stream. A change restarts nothing. Default:
	// nothing is scraped.
	//
	// +optional
	Metrics *PipelineMetrics `json:"metrics,omitempty"`

	// Lineage reports each run, and the data that it reads and writes, to the platform's server for OpenLineage. It never holds up a run.
	// Default: nothing is reported.
	//
	// +optional
	Lineage *JobLineage `json:"lineage,omitempty"`

	// VolumeMounts are the folders of the program where volumes of spec.pod.volumes appear, and where config and secret-NAME do, when it is
	// not their usual folder.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=mountPath
	// +optional
	VolumeMounts []PodVolumeMount `json:"volumeMounts,omitempty"`

	// Pod is what the pods have beside the container of the program, within what the Pod Security Standard "restricted" and the platform
	// allow. Default: nothing.
	//
	// +optional
	Pod *JobPod `json:"pod,omitempty"`

	// PodMetadata are labels and annotations of the pods, beside those that Capstan sets.
	//
	// +optional
	PodMetadata *PodMetadata `json:"podMetadata,omitempty"`
}

// PipelineSchedule is when runs begin.
type PipelineSchedule struct {
	// Cron has five fields: minute, hour, day, month, weekday.
	//
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-0-9A-Za-z*/,]+( [-0-9A-Za-z*/,]+){4}$')",message="must have five fields with a space between: minute, hour, day, month, weekday, for instance 0 3 * * *"
	// +kubebuilder:example="0 3 * * *"
	// +capstan:form:title="Schedule",order=40,group=basic
	Cron string `json:"cron"`

	// TimeZone of the schedule, a name of the IANA time zone database. Default: Etc/UTC.
	//
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",message="must be a name of the IANA time zone database, for instance Europe/Berlin"
	// +kubebuilder:example="Europe/Berlin"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// StartWithin is how late a run can begin, for instance after an outage of the cluster, from 1m to 168h. A run that is later is left
	// out. Default: the last run that was missed begins, however late it is.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be a time from 1m to 168h, for instance 1h"
	// +kubebuilder:example="1h"
	// +optional
	StartWithin *metav1.Duration `json:"startWithin,omitempty"`
}

// PipelineRunRequest asks for one run.
type PipelineRunRequest struct {
	// ID of the run. Each id counts once, so that a manifest that is applied again starts nothing.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', with a letter or digit at both ends, for instance a date"
	// +kubebuilder:example="2026-11-20"
	ID string `json:"id"`

	// Args of the program in this run, in place of spec.args. Default: spec.args.
	//
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +kubebuilder:example={"features.py","--day=2026-11-20"}
	// +optional
	Args []string `json:"args,omitempty"`
}
