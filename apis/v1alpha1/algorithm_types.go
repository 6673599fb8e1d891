// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// An Algorithm serves a model or a proprietary algorithm. It keeps the desired number of replicas of an image running
// and spreads them over the cluster. Clients reach them under one address. Its conditions report what blocks it and
// what to do.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Namespaced,shortName=algo,categories={capstan,composite}
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision.live`
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.status.rollout.phase`
// +kubebuilder:printcolumn:name="Weight",type=integer,JSONPath=`.status.rollout.weight`
// +kubebuilder:printcolumn:name="Candidate",type=string,JSONPath=`.status.revision.candidate`,priority=1
// +kubebuilder:printcolumn:name="Success",type=number,JSONPath=`.status.metrics[?(@.name=="success")].value`,priority=1
// +kubebuilder:printcolumn:name="P95",type=number,JSONPath=`.status.metrics[?(@.name=="latency")].value`,priority=1
// +kubebuilder:printcolumn:name="Budget",type=integer,JSONPath=`.status.slo.budgetRemainingPercent`,priority=1
// +kubebuilder:printcolumn:name="Update",type=string,JSONPath=`.status.conditions[?(@.type=="Updated")].reason`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.status.model.version`,priority=1
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="PodsHealthy")].reason`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",fieldPath=".metadata.name",message="must be at most 63 lower case letters, digits and '-', start with a letter and end with a letter or digit, because the Service of the Algorithm has the same name"
type Algorithm struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state. Everything that reaches the pods forms a revision: a change makes a new revision,
	// which rolls out as spec.lifecycle defines. Fields that do not reach the pods take effect at once and restart
	// nothing; each of them says so.
	Spec AlgorithmSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status AlgorithmStatus `json:"status,omitempty"`
}

// AlgorithmList is a list of Algorithms.
//
// +kubebuilder:object:root=true
type AlgorithmList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Algorithm `json:"items"`
}

// AlgorithmSpec is the desired state of an Algorithm.
//
// +kubebuilder:validation:XValidation:rule="!has(self.scaling) || !has(oldSelf.scaling) || !has(self.replicas) || self.replicas == 0 || has(oldSelf.replicas) && oldSelf.replicas in [0, self.replicas]",fieldPath=".replicas",message="another number has no effect with scaling, where the autoscaler sets it: change scaling.minReplicas or scaling.maxReplicas, or set 0, which stops the Algorithm"
// +kubebuilder:validation:XValidation:rule="!has(self.lifecycle) || !has(self.lifecycle.capacity) || self.lifecycle.capacity == 'Surge' || !has(self.scaling)",fieldPath=".lifecycle.capacity",message="Borrow and Recreate need a fixed number of replicas, which an autoscaler would change: remove scaling and set replicas, or set capacity to Surge"
// +kubebuilder:validation:XValidation:rule="!has(self.lifecycle) || !has(self.lifecycle.capacity) || self.lifecycle.capacity == 'Surge' || has(self.scaling) || has(self.replicas)",fieldPath=".lifecycle.capacity",message="Borrow and Recreate need the number of replicas that both revisions share: set replicas, or set capacity to Surge"
// +kubebuilder:validation:XValidation:rule="!has(self.lifecycle) || !has(self.lifecycle.capacity) || self.lifecycle.capacity != 'Borrow' || !has(self.replicas) || self.replicas != 1",fieldPath=".lifecycle.capacity",message="Borrow needs at least 2 replicas, because one serves while the other is exchanged: raise replicas, or set capacity to Recreate where clients can be refused for a while, or to Surge"
// +kubebuilder:validation:XValidation:rule="!has(self.route) || !has(oldSelf.route) || (has(self.protocol) ? self.protocol : 'HTTP') == (has(oldSelf.protocol) ? oldSelf.protocol : 'HTTP')",fieldPath=".protocol",message="cannot change while route is set, because the Gateway would send requests of one protocol to replicas of the other: remove route, change protocol, and set route again when the new revision is live"
// +kubebuilder:validation:XValidation:rule="!has(self.protocol) || self.protocol != 'GRPC' || !has(self.probes) || !has(self.probes.path) || self.probes.path.matches('^/[-a-zA-Z0-9._]*$')",fieldPath=".probes.path",message="must be / and the service of the gRPC health check with protocol GRPC: / for the whole server, or for instance /reco.v1.Reco"
// +kubebuilder:validation:XValidation:rule="!has(self.protocol) || self.protocol != 'GRPC' || !has(self.probes) || !has(self.probes.warmUp)",fieldPath=".probes.warmUp",message="needs protocol HTTP: remove warmUp, and report the server as not serving in its gRPC health check until it is warm"
// +kubebuilder:validation:XValidation:rule="!has(self.protocol) || self.protocol != 'GRPC' || !has(self.route) || !has(self.route.path) || self.route.path == '/'",fieldPath=".route.path",message="must be / with protocol GRPC: a GRPCRoute has no path, choose a host instead"
// +kubebuilder:validation:XValidation:rule="!has(self.protocol) || self.protocol != 'GRPC' || !has(self.route) || !has(self.route.timeout)",fieldPath=".route.timeout",message="needs protocol HTTP: a GRPCRoute has no timeout, set deadlines in the clients instead"
// +kubebuilder:validation:XValidation:rule="!has(self.protocol) || self.protocol != 'GRPC' || !has(self.lifecycle) || !has(self.lifecycle.mirrorPercent)",fieldPath=".lifecycle.mirrorPercent",message="needs protocol HTTP: no feature of a Gateway reports whether it can copy gRPC requests"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || has(self.lifecycle)",fieldPath=".rollout",message="needs lifecycle, because without it there is no rollout to pause, approve, promote, abort or retry: set lifecycle, or remove rollout"
// +kubebuilder:validation:XValidation:rule="!has(self.objectives) || has(self.objectives.successRatio) || has(self.objectives.latencyMs) || has(self.objectives.timeToFirstTokenMs) || has(self.objectives.timePerOutputTokenMs) || (has(self.scaling) && has(self.scaling.targetLatencyMs)) || (has(self.lifecycle) && has(self.lifecycle.maxLatencyIncreasePercent))",fieldPath=".objectives",message="has no effect without successRatio, latencyMs, timeToFirstTokenMs and timePerOutputTokenMs: set at least one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.slo) || (has(self.objectives) && has(self.objectives.successRatio))",fieldPath=".slo",message="needs objectives.successRatio, the share of requests that must succeed: the error budget is the rest of it"
// +kubebuilder:validation:XValidation:rule="!has(self.slo) || !has(self.slo.failedAfterMs) || !has(self.objectives) || !has(self.objectives.latencyMs) || self.slo.failedAfterMs >= self.objectives.latencyMs",fieldPath=".slo.failedAfterMs",message="must not be less than objectives.latencyMs: no request can be late for the error budget that is still in time for the objective"
// +kubebuilder:validation:XValidation:rule="(has(self.scaling) && has(self.scaling.signal) && self.scaling.signal == 'Query') == (has(self.metrics) && has(self.metrics.queries) && self.metrics.queries.exists(q, q.name == 'load'))",fieldPath=".scaling.signal",message="signal Query and the query load in metrics.queries need each other: set both or neither"
type AlgorithmSpec struct {
	// Image that serves the algorithm, for instance registry.example.org/algo/reco:2.1.4. Use a digest or a tag that
	// never moves, so that every replica runs the same image. A change makes a new revision.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[][a-zA-Z0-9._:/@+-]+$')",message="must be an image reference: letters, digits and any of . _ - / : @ +"
	// +kubebuilder:example="registry.example.org/algo/reco:2.1.4"
	// +capstan:form:title="Container image",order=10,group=basic
	Image string `json:"image"`

	// Replicas is the number of pods. With spec.scaling it is only the initial number; after that the autoscaler sets
	// it, and a change to another number than 0 is refused. 0 stops the Algorithm, also with spec.scaling. A change
	// takes effect at once and restarts nothing. Default: the number that runs, for instance after spec.scaling was
	// removed, or 1 for a new Algorithm.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=3
	// +optional
	// +capstan:form:title="Replicas",order=20,group=basic
	Replicas *int32 `json:"replicas,omitempty"`

	// Port that the container listens on. Clients use port 80 of the Algorithm's Service instead. A change makes a new
	// revision. Default: 8080.
	//
	// +kubebuilder:default=8080
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:example=8080
	// +optional
	// +capstan:form:title="Port of the container",order=30,group=basic
	Port *int32 `json:"port,omitempty"`

	// Protocol that the port speaks: HTTP or GRPC. With GRPC the Services announce HTTP/2 without TLS (appProtocol
	// kubernetes.io/h2c), spec.route makes a GRPCRoute, and spec.probes.path names the service of the gRPC health check.
	// It cannot change while spec.route is set, because the Gateway would send requests of one protocol to replicas of
	// the other. A change makes a new revision. Default: HTTP.
	//
	// +kubebuilder:default=HTTP
	// +kubebuilder:example=GRPC
	// +optional
	Protocol Protocol `json:"protocol,omitempty"`

	// Command replaces the entrypoint of the image. A change makes a new revision. Default: the entrypoint of the
	// image.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +kubebuilder:example={"/server"}
	// +optional
	Command []string `json:"command,omitempty"`

	// Args replace the arguments of the image. A change makes a new revision. Default: the arguments of the image.
	//
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +kubebuilder:example={"--threads=4"}
	// +optional
	Args []string `json:"args,omitempty"`

	// Env holds environment variables of the container. A change makes a new revision.
	//
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []EnvVar `json:"env,omitempty"`

	// Config holds configuration files of the container by name. They appear in /etc/algorithm, or where an entry of
	// spec.volumeMounts with the name config says. All files together can hold 786,432 bytes (768 KiB). A change makes a
	// new revision, like a change of the image.
	//
	// +kubebuilder:example={"reco.yaml":"threshold: 0.7"}
	// +optional
	Config Config `json:"config,omitempty"`

	// Secrets of this namespace whose keys are mounted as files. They appear in /etc/secrets/NAME, or where an entry of
	// spec.volumeMounts with the name secret-NAME says. A change of this list makes a new revision; rotate defines what a
	// change inside a Secret does.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Secrets []MountedSecret `json:"secrets,omitempty"`

	// Model that the container serves, when the image does not contain it. Capstan mounts it before the container
	// starts, in /models, or where an entry of spec.volumeMounts with the name model says. A change of the model's version
	// makes a new revision.
	//
	// +optional
	// +capstan:form:title="Model",order=110
	Model *Model `json:"model,omitempty"`

	// Resources of one replica. A change makes a new revision.
	//
	// +optional
	// +capstan:form:title="Resources of a replica",order=40
	Resources *Resources `json:"resources,omitempty"`

	// Scaling lets the number of replicas follow the load. A change takes effect at once and restarts nothing. Default:
	// no scaling, spec.replicas is the number.
	//
	// +optional
	// +capstan:form:title="Scaling",order=60
	Scaling *Scaling `json:"scaling,omitempty"`

	// Objectives are the share of requests that must succeed, and their latency, of language models also the time to the
	// first token and for each further one. They need metrics; where spec.metrics is
	// not set, its defaults apply. A change restarts nothing.
	//
	// +optional
	Objectives *Objectives `json:"objectives,omitempty"`

	// Metrics defines how Prometheus scrapes the pods, and your own checks of what it finds. A change restarts nothing.
	// Default: nothing is scraped, unless spec.objectives, spec.scaling, spec.lifecycle or spec.slo need metrics.
	//
	// +optional
	Metrics *Metrics `json:"metrics,omitempty"`

	// Lifecycle defines how traffic shifts to a new revision and when it is rolled back. A change takes effect at once,
	// also during a rollout, and restarts nothing. Default: all traffic shifts at once, as soon as the new replicas are
	// ready.
	//
	// +optional
	// +capstan:form:title="Rollouts",order=100
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`

	// Rollout holds what a person asks of a rollout: to pause, approve, promote, abort or retry. A change takes effect at
	// once and restarts nothing. Default: nothing.
	//
	// +optional
	// +nullable
	// +capstan:form:title="Acts on the rollout",group=acts
	Rollout *RolloutRequests `json:"rollout,omitempty"`

	// Experiment is the name of an Experiment of this namespace that shall run now. It compares the live revision (arm A)
	// with a variant of it (arm B) over a long time, outside of rollouts, and needs spec.lifecycle and spec.route. It
	// does not restart the replicas of arm A. Removing the name ends the experiment, and so does another name. Each name
	// runs once. Default: no experiment.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of an Experiment: lower case letters, digits and '-', with a letter or digit at both ends"
	// +kubebuilder:example="ranking-2026-11"
	// +optional
	// +capstan:form:hidden
	Experiment string `json:"experiment,omitempty"`

	// SLO makes objectives.successRatio what clients can rely on over weeks, with an error budget. A change restarts
	// nothing. Default: no error budget.
	//
	// +optional
	SLO *SLO `json:"slo,omitempty"`

	// Probes define when a replica is ready. A change makes a new revision. Default: a replica is ready when its port
	// accepts connections.
	//
	// +optional
	Probes *Probes `json:"probes,omitempty"`

	// Route makes the Algorithm reachable from outside the cluster through a Gateway. Clients inside the cluster do not
	// need it. A change restarts nothing.
	//
	// +optional
	// +capstan:form:title="Route",order=90
	Route *Route `json:"route,omitempty"`

	// Access lists the pods that can send requests to the Algorithm. The Gateway of spec.route and the scraper of metrics
	// always can; the platform's settings define their namespaces. With an empty list no other pod can. Capstan creates a
	// NetworkPolicy for it, which has an effect only where the cluster's network enforces NetworkPolicies. A change
	// restarts nothing. Default: every pod of this namespace.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:example={{"namespace":"checkout","podLabels":{"app":"web"}}}
	// +optional
	Access *[]Client `json:"access,omitempty"`

	// Availability defines how replicas are spread, and how many can be missing during a drain of nodes.
	//
	// +optional
	Availability *Availability `json:"availability,omitempty"`

	// VolumeMounts are the folders of the container where volumes of spec.pod.volumes appear, and where config, model and
	// secret-NAME do, when it is not their usual folder. A change makes a new revision.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=mountPath
	// +optional
	VolumeMounts []PodVolumeMount `json:"volumeMounts,omitempty"`

	// Pod is what the pods have beside the container of the Algorithm, within what the Pod Security Standard "restricted"
	// and the platform allow. A change makes a new revision. Default: nothing.
	//
	// containers are sidecars. They start after initContainers and before the container of the Algorithm, and end after it.
	// The Algorithm's own container is not among them: image, command, env, resources and others of spec describe it.
	// Containers without them get allowPrivilegeEscalation false, no capabilities, and requests of 10m of CPU and 32Mi of
	// memory.
	//
	// volumes are of the kinds that the platform's settings define. Default kinds: configMap, downwardAPI, emptyDir,
	// persistentVolumeClaim, projected and secret. tolerations need none for the GPU of spec.resources. Without
	// serviceAccountName Capstan creates an account without rights and without a token. securityContext.runAsUser is
	// needed for an image whose user is root or only a name.
	//
	// +optional
	Pod *PodSpec `json:"pod,omitempty"`

	// PodMetadata are labels and annotations of the pods, beside those that Capstan sets. A change makes a new revision.
	//
	// +optional
	// +capstan:form:hidden
	PodMetadata *PodMetadata `json:"podMetadata,omitempty"`

	// RevisionHistoryLimit is the number of revisions to keep beside the live one. A kept revision can be restored
	// exactly as it was, even after the platform's settings or version have changed. A change restarts nothing.
	// Default: 2.
	//
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:example=2
	// +optional
	// +capstan:form:hidden
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// Protocol that the port of an Algorithm speaks.
//
// +kubebuilder:validation:Enum=HTTP;GRPC
type Protocol string

// Protocols that the port of an Algorithm speaks.
const (
	ProtocolHTTP Protocol = "HTTP"
	ProtocolGRPC Protocol = "GRPC"
)

// LocalReference names an object of the same namespace.
type LocalReference struct {
	// Name of the object.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="registry-login"
	Name string `json:"name"`
}

// EnvVar is one environment variable: a literal value, or a key of a Secret or ConfigMap.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.value) && has(self.valueFrom))",message="set either value or valueFrom, not both"
type EnvVar struct {
	// Name of the variable.
	//
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z][-._a-zA-Z0-9]*$')",message="must be letters, digits, '_', '-' or '.', and not start with a digit"
	// +kubebuilder:example="LOG_LEVEL"
	Name string `json:"name"`

	// Value of the variable. Default: empty.
	//
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:example="info"
	// +optional
	Value string `json:"value,omitempty"`

	// ValueFrom reads the value from another object of this namespace. Pods read it only when they start.
	//
	// +optional
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// EnvVarSource is where the value of a variable comes from: exactly one of a Secret and a ConfigMap.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="set exactly one of secretKeyRef and configMapKeyRef"
type EnvVarSource struct {
	// SecretKeyRef is a key of a Secret.
	//
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`

	// ConfigMapKeyRef is a key of a ConfigMap.
	//
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}

// KeyReference is one key of a Secret or ConfigMap of the same namespace.
type KeyReference struct {
	// Name of the object.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="reco-license"
	Name string `json:"name"`

	// Key in the object's data.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="must be letters, digits, '-', '_' and '.', and not start with '..'"
	// +kubebuilder:example="license.txt"
	Key string `json:"key"`
}

// Config is a set of files by name. They are in an immutable ConfigMap whose name contains a hash of its content. An edit creates
// another ConfigMap and a new revision; a rollback uses the previous ConfigMap. Variables are in spec.env.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=64
// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[-._a-zA-Z0-9]+$') && !k.startsWith('..') && k != '.' && k.size() <= 253)",message="names of files must be letters, digits, '-', '_' and '.', not start with '..', and have at most 253 characters"
// +kubebuilder:validation:XValidation:rule="self.map(k, size(self[k])).sum() <= 786432",message="must hold at most 786432 bytes in total: move larger files into the image or a volume"
type Config map[string]FileContent

// FileContent is the text of one file.
//
// +kubebuilder:validation:MaxLength=786432
type FileContent string

// Resources of one replica. The memory request is also the limit. CPU has a request and no limit, so that a replica can
// use the idle CPU of its node.
//
// +kubebuilder:validation:XValidation:rule="!has(self.gpuProducts) || has(self.gpu)",fieldPath=".gpuProducts",message="gpuProducts needs gpu: name the resource of the GPU as nodes advertise it, for instance nvidia.com/gpu"
// +kubebuilder:validation:XValidation:rule="!has(self.gpuCount) || has(self.gpu)",fieldPath=".gpuCount",message="gpuCount needs gpu: set gpu to the resource of the GPU as nodes advertise it, for instance nvidia.com/gpu, or use deviceRequest, which has its own count"
// +kubebuilder:validation:XValidation:rule="!has(self.deviceRequest) || !has(self.gpu)",fieldPath=".deviceRequest",message="deviceRequest and gpu exclude each other: remove gpu to claim devices of a DRA driver, or deviceRequest to request an extended resource"
type Resources struct {
	// CPU request. Default: the platform's setting, 250m unless changed, and 1 with a GPU.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1m')) >= 0",message="must be a quantity of at least 1m, for instance 500m"
	// +kubebuilder:example="500m"
	// +optional
	// +capstan:form:title="CPU",order=40,group=advanced
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// Memory request and limit. Default: the platform's setting, 256Mi unless changed. With a GPU the default is a
	// request without a limit, 4Gi unless changed.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="must be a quantity of at least 1Mi, for instance 512Mi"
	// +kubebuilder:example="1Gi"
	// +optional
	// +capstan:form:title="Memory",order=50,group=advanced
	Memory *resource.Quantity `json:"memory,omitempty"`

	// GPU is the extended resource that nodes advertise for the device, for instance nvidia.com/gpu, amd.com/gpu or
	// nvidia.com/mig-1g.10gb. Pods tolerate taints with this key, and taints with the key gpu of the same vendor.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be a resource name of the form vendor/device, for instance nvidia.com/gpu"
	// +kubebuilder:example="nvidia.com/gpu"
	// +optional
	// +capstan:form:title="GPU",order=55,group=advanced
	GPU string `json:"gpu,omitempty"`

	// GPUCount is the number of GPUs of one replica. Default: 1 when gpu is set.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +kubebuilder:example=2
	// +optional
	GPUCount *int32 `json:"gpuCount,omitempty"`

	// GPUProducts are the acceptable GPU models, as nodes name them in a label of the vendor: nvidia.com/gpu.product,
	// amd.com/gpu.product-name, or VENDOR/gpu.product for any other vendor. Default: any model.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +kubebuilder:example={"NVIDIA-A100-SXM4-40GB","NVIDIA-H100-80GB-HBM3"}
	// +optional
	GPUProducts []LabelValue `json:"gpuProducts,omitempty"`

	// DeviceRequest is what each replica claims from a DRA driver (dynamic resource allocation), in place of gpu. The
	// cluster must serve ResourceClaimTemplate of resource.k8s.io/v1, which is so since Kubernetes 1.34. For taints of
	// the nodes see spec.pod.tolerations.
	//
	// +optional
	DeviceRequest *DeviceRequest `json:"deviceRequest,omitempty"`

	// SharedMemory is the size of /dev/shm. Data loaders and the collective communication of GPU frameworks need it. It
	// counts as memory of the replica. Default: 64Mi, from the container runtime.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="must be a quantity of at least 1Mi, for instance 512Mi"
	// +kubebuilder:example="2Gi"
	// +optional
	SharedMemory *resource.Quantity `json:"sharedMemory,omitempty"`
}

// Accelerated reports whether replicas have GPUs, of a device plugin or of a DRA driver.
func (r *Resources) Accelerated() bool { return r.GPU != "" || r.DeviceRequest != nil }

// DeviceRequest is an exact number of devices, in the form of an ExactDeviceRequest of resource.k8s.io/v1.
type DeviceRequest struct {
	// DeviceClassName is the DeviceClass of a DRA driver, for instance gpu.nvidia.com.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be the name of a DeviceClass, for instance gpu.nvidia.com"
	// +kubebuilder:example="gpu.nvidia.com"
	DeviceClassName string `json:"deviceClassName"`

	// Count of devices for each replica. Default: 1.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +kubebuilder:example=2
	// +optional
	Count *int64 `json:"count,omitempty"`

	// Selectors that every device meets. Default: any device of the class.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Selectors []DeviceSelector `json:"selectors,omitempty"`
}

// DeviceSelector chooses devices.
type DeviceSelector struct {
	// CEL chooses them by an expression.
	CEL CELDeviceSelector `json:"cel"`
}

// CELDeviceSelector chooses devices by an expression of CEL.
type CELDeviceSelector struct {
	// Expression about the attributes and capacities that the DRA driver publishes.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:example="device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0"
	Expression string `json:"expression"`
}

// Spread is how strictly replicas are spread over zones.
//
// +kubebuilder:validation:Enum=Preferred;Required;None
type Spread string

// How strictly replicas are spread over zones.
const (
	// SpreadPreferred spreads replicas when several zones have room.
	SpreadPreferred Spread = "Preferred"
	// SpreadRequired leaves a replica pending when its placement would unbalance the zones.
	SpreadRequired Spread = "Required"
	// SpreadNone leaves the choice to the scheduler.
	SpreadNone Spread = "None"
)

// Availability of an Algorithm while nodes come and go.
type Availability struct {
	// Zones is how strictly replicas are spread over zones (topology.kubernetes.io/zone): Preferred, Required or None.
	// Replicas are always spread over nodes when there is room. A change makes a new revision. Default: Preferred.
	//
	// +kubebuilder:default=Preferred
	// +kubebuilder:example=Preferred
	// +optional
	Zones Spread `json:"zones,omitempty"`

	// MaxUnavailable is the number or percentage of replicas that can be missing during a drain of nodes. A rollout
	// never goes below the desired number, except with lifecycle.capacity: Borrow, where so many, but not all, can be
	// missing. A change restarts nothing. Default: 1.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9]|[1-9][0-9]|100)%$')",message="must be a number of at least 1, or a share from 1% to 100%"
	// +kubebuilder:example=1
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// DrainSeconds is the time in seconds that a stopping replica has to finish its requests. The replicas of the
	// previous revision also stay for this time after all traffic has shifted. A change makes a new revision. Default:
	// 30.
	//
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:example=30
	// +optional
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`
}
