// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Names by which a Preview and what it is made from are found.
const (
	// AnnotationPreviews of an Algorithm or a Database allows Previews of it, with the value PreviewsAllowed.
	AnnotationPreviews = "capstan.dev/previews"
	// PreviewsAllowed is the value of AnnotationPreviews that allows Previews.
	PreviewsAllowed = "Allowed"
	// LabelPreview has the name of the Preview on everything that goes with it: its Algorithm and Database, volumes and Secrets.
	LabelPreview = "capstan.dev/preview"
)

// A Preview is a temporary copy of an Algorithm, of a Database, or of both, for instance for a pull request. Its Algorithm has the name of
// the Preview, its Database that name with -db. When its time is up, both are removed with all their data, and the Preview stays as a
// record. The originals are only read.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={capstan,composite}
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expiresAt`
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.algorithm.image`,priority=1
// +kubebuilder:printcolumn:name="Data",type=string,JSONPath=`.spec.database.data`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="PreviewReady")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="PreviewReady")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,35}[a-z0-9])?$')",fieldPath=".metadata.name",message="must be at most 37 lower case letters, digits and '-', start with a letter and end with a letter or digit, because the names of its Algorithm and its Database begin with it"
type Preview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to copy, and for how long.
	Spec PreviewSpec `json:"spec"`

	// Status is the observed state. It stays as a record when the time is up.
	//
	// +optional
	Status PreviewStatus `json:"status,omitempty"`
}

// PreviewList is a list of Previews.
//
// +kubebuilder:object:root=true
type PreviewList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Preview `json:"items"`
}

// PreviewSpec is what a Preview copies, and for how long.
//
// +kubebuilder:validation:XValidation:rule="has(self.algorithm) || has(self.database)",message="algorithm, database: set at least one, otherwise there is nothing to preview"
// +kubebuilder:validation:XValidation:rule="!(has(self.ttl) && has(self.expiresAt))",fieldPath=".ttl",message="set ttl or expiresAt, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.idleAfter) || has(self.algorithm)",fieldPath=".idleAfter",message="needs algorithm, because only its requests are counted: remove idleAfter, or set algorithm"
// +kubebuilder:validation:XValidation:rule="!has(self.database) || !has(oldSelf.database) || self.database.of == oldSelf.database.of && self.database.data == oldSelf.database.data && has(self.database.at) == has(oldSelf.database.at) && (!has(self.database.at) || self.database.at == oldSelf.database.at)",fieldPath=".database",message="of, data and at cannot be changed, because data is copied once: make another Preview"
// +kubebuilder:validation:XValidation:rule="!has(self.database) || !has(oldSelf.database) || has(self.database.mask) == has(oldSelf.database.mask) && (!has(self.database.mask) || self.database.mask == oldSelf.database.mask)",fieldPath=".database.mask",message="cannot be changed, because data is masked once, when it is copied: make another Preview"
type PreviewSpec struct {
	// Owner is whom to ask about the Preview, for instance the author of the pull request. Default: none.
	//
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must not have control characters"
	// +kubebuilder:example="jane"
	// +optional
	Owner string `json:"owner,omitempty"`

	// TTL is how long the Preview lives from its creation, from 5m to 2160h. The platform's settings can have a lower limit. A higher value
	// extends it, also when its time was up: then it is made again, with its data as it was at the beginning. Default: 48h, or the limit of
	// the settings where that is lower.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && self != '' && duration(self) >= duration('5m') && duration(self) <= duration('2160h')",message="must be from 5m to 2160h, for instance 48h"
	// +kubebuilder:example="48h"
	// +optional
	TTL *metav1.Duration `json:"ttl,omitempty"`

	// ExpiresAt is the time when the Preview ends, instead of ttl. It must be within the limit of the platform's settings. A later time
	// extends it.
	//
	// +kubebuilder:example="2026-11-28T18:00:00Z"
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// IdleAfter lets the Algorithm sleep without a replica after that time without a request, from 1m to 24h. The next request starts one,
	// and waits for it. Its data stays until the Preview ends. It needs Prometheus. Default: it never sleeps.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && self != '' && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="must be from 1m to 24h, for instance 1h"
	// +kubebuilder:example="1h"
	// +optional
	IdleAfter *metav1.Duration `json:"idleAfter,omitempty"`

	// Algorithm to copy. Default: none.
	//
	// +optional
	Algorithm *PreviewAlgorithm `json:"algorithm,omitempty"`

	// Database to copy. Default: none.
	//
	// +optional
	Database *PreviewDatabase `json:"database,omitempty"`
}

// PreviewAlgorithm is the Algorithm to copy, and what is different. What is not set here is as in the original, and follows its edits.
// A copy has no rollout, no error budget and no alerts. Where it refers to a Secret of the Database that the Preview copies, it gets the
// Secret of the copy instead.
type PreviewAlgorithm struct {
	// Of is the name of the original, an Algorithm of this namespace with the annotation capstan.dev/previews: Allowed.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of an Algorithm: lower case letters, digits and '-', with a letter first and no '-' at the end"
	// +kubebuilder:example=reco
	Of string `json:"of"`

	// Image instead of the original's.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[][a-zA-Z0-9._:/@+-]+$')",message="must be an image reference: letters, digits and any of . _ - / : @ +"
	// +kubebuilder:example="registry.example.org/algo/reco:pr-123"
	// +optional
	Image string `json:"image,omitempty"`

	// Replicas is the number of pods, from 1 to 10. Default: 1.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:example=1
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Args instead of the original's.
	//
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +kubebuilder:example={"--threads=4"}
	// +optional
	Args []string `json:"args,omitempty"`

	// Env holds variables beside the original's. They replace variables of the same name.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []EnvVar `json:"env,omitempty"`

	// Host name under which the Preview is reached from outside the cluster. Default: NAME-HASH below the domain for previews of the
	// platform's settings, where HASH is of namespace and name; without one it is reached inside the cluster only.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a host name in lower case, for instance reco-pr-123.preview.example.org"
	// +kubebuilder:example="reco-pr-123.preview.example.org"
	// +optional
	Host string `json:"host,omitempty"`
}

// PreviewData is the data that the Database of a Preview begins with.
//
// +kubebuilder:validation:Enum=Empty;LatestBackup;Moment
type PreviewData string

// The data that the Database of a Preview begins with.
const (
	// PreviewEmpty: none.
	PreviewEmpty PreviewData = "Empty"
	// PreviewLatest: the latest moment in the backups and the archive of the original.
	PreviewLatest PreviewData = "LatestBackup"
	// PreviewMoment: an earlier moment of them.
	PreviewMoment PreviewData = "Moment"
)

// PreviewDatabase is the Database to copy, and what is different. What is not set here is as in the original. A copy has no backups, no
// alerts, no deletion protection, and passwords of its own. Its consumers are those that the Algorithm of the Preview uses, or one with the
// name app.
//
// +kubebuilder:validation:XValidation:rule="has(self.at) == (self.data == 'Moment')",fieldPath=".at",message="at is required for data Moment, and only for it"
// +kubebuilder:validation:XValidation:rule="!has(self.mask) || self.data != 'Empty'",fieldPath=".mask",message="there is nothing to mask with data Empty: remove mask, or choose other data"
type PreviewDatabase struct {
	// Of is the name of the original, a Database of this namespace with the annotation capstan.dev/previews: Allowed.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Database"
	// +kubebuilder:example="orders-db"
	Of string `json:"of"`

	// Data that the copy begins with: Empty, LatestBackup for the latest moment in the original's backups and archive, or Moment. It cannot
	// change. The original's bucket is only read.
	//
	// +kubebuilder:example=LatestBackup
	Data PreviewData `json:"data"`

	// At is the moment, with data Moment: the copy has every commit up to then and no later one.
	//
	// +kubebuilder:example="2026-11-21T08:59:00Z"
	// +optional
	At Moment `json:"at,omitempty"`

	// Mask is SQL that changes the data of the copy before any client can connect to it. Until all of it has succeeded, nothing of the copy
	// can be reached. It cannot change. The owner of the original can demand a mask for every Preview, with the annotation
	// capstan.dev/previews-mask: that one runs first, and this one after it. Default: the data stays as it is.
	//
	// +optional
	Mask *PreviewMask `json:"mask,omitempty"`

	// Replicas is the number of members, from 1 to 3. Default: 1.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3
	// +kubebuilder:example=1
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Storage is the size of each member's volume. It must have room for the data, and cannot shrink. Default: the original's.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Gi')) >= 0",message="must be a quantity of at least 1Gi, for instance 20Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || !isQuantity(string(oldSelf)) || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="cannot shrink: make another Preview"
	// +kubebuilder:example="20Gi"
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`
}

// PreviewMask is SQL that masks the data of a copy.
//
// +kubebuilder:validation:ExactlyOneOf=statements;configMapRef
type PreviewMask struct {
	// Statements to run, one after the other.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Statements []MaskStatement `json:"statements,omitempty"`

	// ConfigMapRef names a ConfigMap of this namespace, whose key mask.yaml has such a list of statements.
	//
	// +optional
	ConfigMapRef *LocalReference `json:"configMapRef,omitempty"`
}

// PreviewPhase is the phase of a Preview.
//
// +kubebuilder:validation:Enum=Pending;Starting;Ready;Asleep;Expiring;Expired
type PreviewPhase string

// Phases of a Preview.
const (
	// PreviewPending: something blocks it. The conditions say what.
	PreviewPending PreviewPhase = "Pending"
	// PreviewStarting: its Algorithm or its Database is not ready.
	PreviewStarting PreviewPhase = "Starting"
	// PreviewReady: all of it is ready.
	PreviewReady PreviewPhase = "Ready"
	// PreviewAsleep: no request came for spec.idleAfter. The next one starts a replica.
	PreviewAsleep PreviewPhase = "Asleep"
	// PreviewExpiring: its time is up, and its Algorithm and its Database are being removed.
	PreviewExpiring PreviewPhase = "Expiring"
	// PreviewExpired: its time is up, and its Algorithm and its Database do not exist any more.
	PreviewExpired PreviewPhase = "Expired"
)

// PreviewStatus is the observed state of a Preview.
type PreviewStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Phase: Pending, Starting, Ready, Asleep, Expiring or Expired.
	//
	// +optional
	Phase PreviewPhase `json:"phase,omitempty"`

	// URL is the address of the Algorithm: outside the cluster once its route is accepted, and else inside.
	//
	// +optional
	URL string `json:"url,omitempty"`

	// ExpiresAt is when its time is up.
	//
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// ExpiredAt is when its time was found to be up.
	//
	// +optional
	ExpiredAt *metav1.Time `json:"expiredAt,omitempty"`

	// Copies that the Preview consists of. They stay here when its time is up.
	//
	// +listType=map
	// +listMapKey=kind
	// +optional
	Copies []PreviewCopy `json:"copies,omitempty"`

	// ConnectionSecrets have everything to connect to the Database of the Preview, by its consumers.
	//
	// +listType=map
	// +listMapKey=consumer
	// +optional
	ConnectionSecrets []PreviewSecret `json:"connectionSecrets,omitempty"`

	// Withheld objects were refused by the API server. Each is left out for a minute, and then tried again.
	//
	// +listType=map
	// +listMapKey=resource
	// +optional
	Withheld []Withheld `json:"withheld,omitempty"`
}

// PreviewCopyState is the state of a copy.
//
// +kubebuilder:validation:Enum=Waiting;Starting;Ready;Asleep;Removing;Removed
type PreviewCopyState string

// States of a copy.
const (
	// CopyWaiting: it does not exist yet.
	CopyWaiting PreviewCopyState = "Waiting"
	// CopyStarting: it is not ready.
	CopyStarting PreviewCopyState = "Starting"
	// CopyReady: it is ready.
	CopyReady PreviewCopyState = "Ready"
	// CopyAsleep: it has no replica until the next request.
	CopyAsleep PreviewCopyState = "Asleep"
	// CopyRemoving: it is being deleted.
	CopyRemoving PreviewCopyState = "Removing"
	// CopyRemoved: it does not exist any more.
	CopyRemoved PreviewCopyState = "Removed"
)

// PreviewCopy is an Algorithm or a Database that a Preview consists of.
type PreviewCopy struct {
	// Kind: Algorithm or Database.
	Kind string `json:"kind"`

	// Name of the copy.
	Name string `json:"name"`

	// Of is the name of the original.
	Of string `json:"of"`

	// Image or version of the copy.
	//
	// +optional
	Image string `json:"image,omitempty"`

	// State: Waiting, Starting, Ready, Asleep, Removing or Removed.
	State PreviewCopyState `json:"state"`
}

// PreviewSecret has everything to connect to the Database of a Preview.
type PreviewSecret struct {
	// Consumer that connects with it.
	Consumer string `json:"consumer"`

	// Secret of this namespace.
	Secret string `json:"secret"`

	// Ready reports whether the consumer can log in.
	Ready bool `json:"ready"`
}
