// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PipelineSetting is the value of a setting of an engine.
//
// +kubebuilder:validation:MaxLength=4096
type PipelineSetting string

// PipelineSparkSpec is a Spark application with a cluster of its own: a driver with the master, and executors.
type PipelineSparkSpec struct {
	// Home is the folder of Spark in the image. Default: /opt/spark.
	//
	// +kubebuilder:default="/opt/spark"
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[A-Za-z0-9_./-]*$') && !self.contains('..')",message="must be an absolute path of letters, digits, '_', '.' and '-', without '..'"
	// +kubebuilder:example="/opt/spark"
	// +optional
	Home string `json:"home,omitempty"`

	// MainClass of a jar. Without it args begin with a Python file. Default: none.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_$][A-Za-z0-9_.$]*$')",message="must be the name of a class, for instance org.example.Features"
	// +kubebuilder:example="org.example.Features"
	// +optional
	MainClass string `json:"mainClass,omitempty"`

	// Executors is the number of pods with an executor each, beside the pod of the driver and the master. All of them have the resources
	// of spec.resources, because one Job makes them. Default: 1.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	// +kubebuilder:example=4
	// +optional
	Executors *int32 `json:"executors,omitempty"`

	// Conf are settings of Spark, beside those that Capstan sets for address, cores and memory.
	//
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^spark[.][A-Za-z0-9._-]+$'))",message="each name must begin with spark."
	// +kubebuilder:example={"spark.sql.shuffle.partitions":"64"}
	// +optional
	Conf map[string]PipelineSetting `json:"conf,omitempty"`
}

// PipelineFlinkSpec is a Flink job with a cluster of its own: a JobManager, and TaskManagers.
type PipelineFlinkSpec struct {
	// Home is the folder of Flink in the image. Default: /opt/flink.
	//
	// +kubebuilder:default="/opt/flink"
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[A-Za-z0-9_./-]*$') && !self.contains('..')",message="must be an absolute path of letters, digits, '_', '.' and '-', without '..'"
	// +kubebuilder:example="/opt/flink"
	// +optional
	Home string `json:"home,omitempty"`

	// MainClass of the job, in a jar of the folder usrlib of Flink.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_$][A-Za-z0-9_.$]*$')",message="must be the name of a class, for instance org.example.Clicks"
	// +kubebuilder:example="org.example.Clicks"
	MainClass string `json:"mainClass"`

	// State is where checkpoints and savepoints are.
	State PipelineFlinkState `json:"state"`

	// TaskManagers is the number of pods that run the operators of the job, or their least number with scaling. Default: 1.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	// +kubebuilder:example=2
	// +optional
	TaskManagers *int32 `json:"taskManagers,omitempty"`

	// Slots of each TaskManager. The parallelism is the number of all slots. Default: 1.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +kubebuilder:example=2
	// +optional
	Slots *int32 `json:"slots,omitempty"`

	// TaskManagerResources of each TaskManager. Default: spec.resources.
	//
	// +optional
	TaskManagerResources *Resources `json:"taskManagerResources,omitempty"`

	// Scaling of the number of TaskManagers. Default: none.
	//
	// +optional
	Scaling *PipelineFlinkScaling `json:"scaling,omitempty"`

	// CheckpointEvery is the time between two checkpoints, from 1s to 24h. Default: 1m.
	//
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a time from 1s to 24h, for instance 1m"
	// +kubebuilder:example="1m"
	// +optional
	CheckpointEvery *metav1.Duration `json:"checkpointEvery,omitempty"`

	// SavepointWithin is the time that a savepoint may take before a pod ends, from 10s to 1h. After that the newest checkpoint counts.
	// Default: 5m.
	//
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('10s') && duration(self) <= duration('1h')",message="must be a time from 10s to 1h, for instance 5m"
	// +kubebuilder:example="5m"
	// +optional
	SavepointWithin *metav1.Duration `json:"savepointWithin,omitempty"`

	// StableWithin is the time within which an edited job has to complete a checkpoint, from 1m to 24h. After that the spec before the
	// edit runs, from the state that it had. Default: 10m.
	//
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="must be a time from 1m to 24h, for instance 10m"
	// +kubebuilder:example="10m"
	// +optional
	StableWithin *metav1.Duration `json:"stableWithin,omitempty"`

	// Conf are settings of Flink, beside those that Capstan sets.
	//
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-z][A-Za-z0-9._-]+$'))",message="each name must be a setting of Flink, for instance state.backend.type"
	// +kubebuilder:example={"state.backend.type":"rocksdb"}
	// +optional
	Conf map[string]PipelineSetting `json:"conf,omitempty"`
}

// PipelineFlinkState is where checkpoints and savepoints are.
//
// +kubebuilder:validation:XValidation:rule="has(self.claimName) != has(self.claim)",message="set exactly one of claimName, for a claim that exists, and claim, for one of this Pipeline"
type PipelineFlinkState struct {
	// ClaimName is a PersistentVolumeClaim of this namespace, which outlives the Pipeline. On several nodes it needs the access mode
	// ReadWriteMany.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="clicks-state"
	// +optional
	ClaimName string `json:"claimName,omitempty"`

	// Claim is one that this Pipeline makes. It stays when it is removed from the spec, and is deleted with the Pipeline.
	//
	// +optional
	Claim *ModelCache `json:"claim,omitempty"`
}

// PipelineFlinkScaling changes the number of TaskManagers with the load. The job is restarted from its last checkpoint each time.
type PipelineFlinkScaling struct {
	// Max number of TaskManagers.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	// +kubebuilder:example=8
	Max int32 `json:"max"`

	// CPUPercent of the requested CPU that TaskManagers use on average. Default: 70.
	//
	// +kubebuilder:default=70
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=70
	// +optional
	CPUPercent *int32 `json:"cpuPercent,omitempty"`
}
