// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

const (
	// TagOwner marks a bucket as the external resource of one Bucket. Its value is
	// the UID of the cluster's namespace kube-system, the namespace and the name of
	// the Bucket, joined by slashes. A bucket with the owner tag of another is
	// never touched.
	TagOwner = "capstan.dev/owner"

	// AnnotationCreating tells that the bucket of this name may have been made by
	// this Bucket although its creation failed: no answer came, or its tag could not
	// be set.
	AnnotationCreating = "storage.capstan.dev/creating"
)

// The keys of the connection Secret of a Bucket. The key ca.crt is there only when
// the config has a caBundle, the last three only when it has workloadCredentials.
const (
	KeyEndpoint        = "endpoint"
	KeyRegion          = "region"
	KeyBucket          = "bucket"
	KeyCA              = "ca.crt"
	KeyAccessKeyID     = "accessKeyId"
	KeySecretAccessKey = "secretAccessKey"
	KeySessionToken    = "sessionToken"
)

// A Bucket is a bucket on an S3 server. Its name there is the external name: by
// default the name of the Bucket, behind the prefix that a ClusterProviderConfig
// gives every namespace.
//
// A feature that the spec does not mention is left as it is on the server. A
// feature that was set and is taken out of the spec is removed from the bucket.
// A bucket that holds objects is not deleted, unless forceDestroy is true.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name: must have at most 63 characters, as the name of a bucket"
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.status.atProvider.bucketName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the bucket should be like.
	Spec BucketSpec `json:"spec"`

	// Status is what the bucket is like.
	//
	// +optional
	Status BucketStatus `json:"status,omitempty"`
}

// BucketList holds many Buckets.
//
// +kubebuilder:object:root=true
type BucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bucket `json:"items"`
}

// BucketSpec is what the bucket should be like.
type BucketSpec struct {
	// ManagementPolicies are what the provider may do with the bucket. ["Observe"]
	// only looks at a bucket that is there already. Policies without Delete leave
	// the bucket when the Bucket goes.
	//
	// +kubebuilder:default={"*"}
	// +kubebuilder:example={"Observe","Create","Update","LateInitialize"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ProviderConfigReference names the ProviderConfig of this namespace, or the
	// ClusterProviderConfig, that says where the S3 server is.
	//
	// +kubebuilder:default={"kind": "ClusterProviderConfig", "name": "s3"}
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "s3"}
	// +kubebuilder:validation:XValidation:rule="self.kind in ['ProviderConfig', 'ClusterProviderConfig']",messageExpression="'providerConfigRef.kind: ' + self.kind + ' is neither ProviderConfig nor ClusterProviderConfig'"
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 63 && self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'providerConfigRef.name: ' + self.name + ' is not the name of a config: at most 63 lower case letters, digits, - and .'"
	// +optional
	ProviderConfigReference *xpv2.ProviderConfigReference `json:"providerConfigRef,omitempty"`

	// WriteConnectionSecretToReference names the Secret, of this namespace, that
	// tells applications how to reach the bucket: endpoint, region, bucket, and
	// accessKeyId and secretAccessKey if the config has workloadCredentials.
	//
	// +kubebuilder:example={"name": "backups-s3"}
	// +optional
	WriteConnectionSecretToReference *xpv2.LocalSecretReference `json:"writeConnectionSecretToRef,omitempty"`

	// ForProvider is what the bucket should be like.
	//
	// +kubebuilder:default={}
	// +optional
	ForProvider BucketParameters `json:"forProvider,omitempty"`
}

// BucketParameters are what the bucket should be like.
//
// +kubebuilder:validation:XValidation:rule="has(self.region) == has(oldSelf.region)",message="region: cannot be added or removed once the Bucket is there; make another Bucket"
// +kubebuilder:validation:XValidation:rule="has(self.objectLock) == has(oldSelf.objectLock)",message="objectLock: is decided when a bucket is made and cannot be added or removed later; make another Bucket"
// +kubebuilder:validation:XValidation:rule="!has(self.objectLock) || !has(self.versioning) || self.versioning == 'Enabled'",message="versioning: must be Enabled with objectLock"
type BucketParameters struct {
	// Region that the bucket is in. The default is the config's. It cannot be
	// changed. A server of another make than AWS is told it only when it is set here,
	// and may refuse what it does not call its own.
	//
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]{1,63}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="region: cannot be changed; make another Bucket"
	// +kubebuilder:example="eu-central-1"
	// +optional
	Region *string `json:"region,omitempty"`

	// Adopt agrees to take over a bucket of this name that exists and belongs to
	// nobody. From then on it is changed to what this spec says, and deleted as
	// managementPolicies say.
	//
	// +kubebuilder:default=false
	// +kubebuilder:example=false
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// ForceDestroy agrees that deleting this Bucket deletes every object, version
	// and unfinished upload in it. Objects under a retention that has not ended
	// stay, and so does the bucket.
	//
	// +kubebuilder:default=false
	// +kubebuilder:example=false
	// +optional
	ForceDestroy bool `json:"forceDestroy,omitempty"`

	// Versioning keeps old versions of objects. It can be suspended, and never be
	// switched off again.
	//
	// +kubebuilder:validation:Enum=Enabled;Suspended
	// +kubebuilder:example=Enabled
	// +optional
	Versioning *string `json:"versioning,omitempty"`

	// ObjectLock forbids to delete or overwrite versions of objects while their
	// retention lasts. It switches versioning on. A server that does not have it
	// refuses to make the bucket, and the condition Connected says so.
	//
	// +optional
	ObjectLock *ObjectLock `json:"objectLock,omitempty"`

	// Encryption of new objects by the server. Objects that are there stay as they
	// are.
	//
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`

	// LifecycleRules delete what has become old. They are all the rules of the
	// bucket: others that it has are replaced.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=id
	// +optional
	LifecycleRules []LifecycleRule `json:"lifecycleRules,omitempty"`

	// Policy says who may do what with the bucket, as a JSON document in the policy
	// language of S3. It is compared by meaning, not by spelling. One that the server
	// does not accept is told in the condition Connected, and the one before stays.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^\\\\s*[{](?s:.*)[}]\\\\s*$')",message="policy: must be a JSON object"
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=20480
	// +kubebuilder:example="{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"s3:GetObject\",\"Resource\":\"arn:aws:s3:::shop-assets/*\"}]}"
	// +optional
	Policy *string `json:"policy,omitempty"`

	// CORSRules let web pages of other origins use the bucket. The first that fits
	// applies. They are all the rules of the bucket: others that it has are replaced.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	CORSRules []CORSRule `json:"corsRules,omitempty"`

	// Tags of the bucket. Tags that others have set stay. Keys that begin with
	// capstan.dev/ or aws: are reserved.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=45
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) >= 1 && size(k) <= 128 && size(self[k]) <= 256)",message="tags: a key must have 1 to 128 characters, a value at most 256"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('capstan.dev/') && !k.startsWith('aws:'))",message="tags: keys that begin with capstan.dev/ or aws: are reserved"
	// +kubebuilder:example={"team": "shop"}
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// PublicAccessBlock overrules policies and ACLs that would make the bucket
	// public.
	//
	// +optional
	PublicAccessBlock *PublicAccessBlock `json:"publicAccessBlock,omitempty"`
}

// ObjectLock forbids to delete or overwrite versions of objects.
//
// +kubebuilder:example={"defaultRetention": {"mode": "Governance", "days": 30}}
type ObjectLock struct {
	// DefaultRetention of new objects. When it is left out, only objects that ask
	// for a retention have one.
	//
	// +optional
	DefaultRetention *Retention `json:"defaultRetention,omitempty"`
}

// Retention says how long a version of an object stays.
//
// +kubebuilder:validation:ExactlyOneOf=days;years
type Retention struct {
	// Mode: Governance lets users with a special permission delete earlier,
	// Compliance lets nobody.
	//
	// +kubebuilder:validation:Enum=Governance;Compliance
	// +kubebuilder:example=Governance
	Mode string `json:"mode"`

	// Days that a version stays.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	// +kubebuilder:example=30
	// +optional
	Days *int32 `json:"days,omitempty"`

	// Years that a version stays.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=1
	// +optional
	Years *int32 `json:"years,omitempty"`
}

// Encryption of new objects by the server.
//
// +kubebuilder:validation:XValidation:rule="!has(self.kmsKeyId) || self.algorithm == 'aws:kms'",message="kmsKeyId: is only for algorithm aws:kms"
// +kubebuilder:validation:XValidation:rule="!has(self.bucketKey) || self.algorithm == 'aws:kms'",message="bucketKey: is only for algorithm aws:kms"
type Encryption struct {
	// Algorithm: AES256 uses keys of the server, aws:kms those of a key management
	// service.
	//
	// +kubebuilder:validation:Enum={"AES256","aws:kms"}
	// +kubebuilder:example=AES256
	Algorithm string `json:"algorithm"`

	// KMSKeyID is the key of the key management service: an ID, an alias or an ARN.
	// When it is left out the server uses its own, or the one that was set before.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="alias/backups"
	// +optional
	KMSKeyID *string `json:"kmsKeyId,omitempty"`

	// BucketKey asks the key management service once for a bucket and not for
	// every object.
	//
	// +kubebuilder:example=true
	// +optional
	BucketKey *bool `json:"bucketKey,omitempty"`
}

// A LifecycleRule deletes what has become old.
//
// +kubebuilder:validation:XValidation:rule="has(self.expireAfterDays) || has(self.expireNoncurrentAfterDays) || has(self.abortUploadsAfterDays) || (has(self.expireDeleteMarkers) && self.expireDeleteMarkers)",message="lifecycleRules: a rule must have expireAfterDays, expireNoncurrentAfterDays, abortUploadsAfterDays or expireDeleteMarkers"
// +kubebuilder:validation:XValidation:rule="!has(self.expireDeleteMarkers) || !self.expireDeleteMarkers || !has(self.expireAfterDays)",message="expireDeleteMarkers: cannot be combined with expireAfterDays, which removes them anyway"
// +kubebuilder:validation:XValidation:rule="!has(self.keepNoncurrentVersions) || has(self.expireNoncurrentAfterDays)",message="keepNoncurrentVersions: needs expireNoncurrentAfterDays"
// +kubebuilder:validation:XValidation:rule="!has(self.abortUploadsAfterDays) || !has(self.tags)",message="abortUploadsAfterDays: cannot be chosen by tags, because unfinished uploads have none"
// +kubebuilder:validation:XValidation:rule="!has(self.expireDeleteMarkers) || !self.expireDeleteMarkers || !has(self.tags)",message="expireDeleteMarkers: cannot be chosen by tags, because delete markers have none"
type LifecycleRule struct {
	// ID of the rule, unique in the bucket.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:example="old-backups"
	ID string `json:"id"`

	// Prefix of the names of the objects that the rule is for. The default is all.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:example="wal/"
	// +optional
	Prefix *string `json:"prefix,omitempty"`

	// Tags that the objects must have which the rule is for. The default is all
	// objects.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=10
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) >= 1 && size(k) <= 128 && size(self[k]) <= 256)",message="tags: a key must have 1 to 128 characters, a value at most 256"
	// +kubebuilder:example={"kind": "temporary"}
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// ExpireAfterDays deletes objects so many days after they were written.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	// +kubebuilder:example=90
	// +optional
	ExpireAfterDays *int32 `json:"expireAfterDays,omitempty"`

	// ExpireNoncurrentAfterDays deletes versions so many days after a newer one
	// replaced them.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	// +kubebuilder:example=7
	// +optional
	ExpireNoncurrentAfterDays *int32 `json:"expireNoncurrentAfterDays,omitempty"`

	// KeepNoncurrentVersions is how many replaced versions stay however old they
	// are.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=3
	// +optional
	KeepNoncurrentVersions *int32 `json:"keepNoncurrentVersions,omitempty"`

	// ExpireDeleteMarkers removes markers of deleted objects of which no version is
	// left.
	//
	// +kubebuilder:example=true
	// +optional
	ExpireDeleteMarkers bool `json:"expireDeleteMarkers,omitempty"`

	// AbortUploadsAfterDays removes the parts of uploads that were not finished so
	// many days after they began.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	// +kubebuilder:example=7
	// +optional
	AbortUploadsAfterDays *int32 `json:"abortUploadsAfterDays,omitempty"`
}

// A CORSRule lets web pages of other origins use a bucket.
type CORSRule struct {
	// AllowedOrigins of web pages, each with at most one *.
	//
	// +kubebuilder:validation:XValidation:rule="self.all(o, o.indexOf('*') == o.lastIndexOf('*'))",message="allowedOrigins: each may have at most one *"
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:example={"https://shop.example.org"}
	// +listType=set
	AllowedOrigins []string `json:"allowedOrigins"`

	// AllowedMethods of requests.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:Enum=GET;PUT;POST;DELETE;HEAD
	// +kubebuilder:example={"GET"}
	// +listType=set
	AllowedMethods []string `json:"allowedMethods"`

	// AllowedHeaders of requests, each with at most one *.
	//
	// +kubebuilder:validation:XValidation:rule="self.all(h, h.indexOf('*') == h.lastIndexOf('*'))",message="allowedHeaders: each may have at most one *"
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:example={"*"}
	// +listType=set
	// +optional
	AllowedHeaders []string `json:"allowedHeaders,omitempty"`

	// ExposeHeaders of answers that a page may read.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:example={"ETag"}
	// +listType=set
	// +optional
	ExposeHeaders []string `json:"exposeHeaders,omitempty"`

	// MaxAgeSeconds is how long a browser may remember this rule, in seconds.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:example=3600
	// +optional
	MaxAgeSeconds *int32 `json:"maxAgeSeconds,omitempty"`
}

// PublicAccessBlock overrules what would make a bucket public.
//
// +kubebuilder:example={"blockPublicAcls": true, "ignorePublicAcls": true, "blockPublicPolicy": true, "restrictPublicBuckets": true}
type PublicAccessBlock struct {
	// BlockPublicACLs refuses new ACLs that make objects public.
	//
	// +kubebuilder:default=true
	// +kubebuilder:example=true
	// +optional
	BlockPublicACLs *bool `json:"blockPublicAcls,omitempty"`

	// IgnorePublicACLs acts as if there were no ACLs that make objects public.
	//
	// +kubebuilder:default=true
	// +kubebuilder:example=true
	// +optional
	IgnorePublicACLs *bool `json:"ignorePublicAcls,omitempty"`

	// BlockPublicPolicy refuses new policies that make the bucket public.
	//
	// +kubebuilder:default=true
	// +kubebuilder:example=true
	// +optional
	BlockPublicPolicy *bool `json:"blockPublicPolicy,omitempty"`

	// RestrictPublicBuckets lets only users of the bucket's own account use a
	// public policy.
	//
	// +kubebuilder:default=true
	// +kubebuilder:example=true
	// +optional
	RestrictPublicBuckets *bool `json:"restrictPublicBuckets,omitempty"`
}

// BucketStatus is what the bucket is like.
type BucketStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen on the server.
	//
	// +optional
	AtProvider BucketObservation `json:"atProvider,omitempty"`
}

// BucketObservation is what was seen on the server.
type BucketObservation struct {
	// BucketName is the name of the bucket on the server.
	//
	// +optional
	BucketName string `json:"bucketName,omitempty"`

	// Endpoint is the URL of the server.
	//
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// Region that the bucket is in.
	//
	// +optional
	Region string `json:"region,omitempty"`

	// Owned tells that the bucket is this Bucket's own: it made it, or took it over.
	// Where the server has no tags, nothing else does.
	//
	// +optional
	Owned bool `json:"owned,omitempty"`

	// Features that this Bucket has set, sorted. One that is listed here and no
	// longer in the spec is removed from the bucket.
	//
	// +listType=set
	// +optional
	Features []string `json:"features,omitempty"`

	// TagKeys that this Bucket has set, sorted.
	//
	// +listType=set
	// +optional
	TagKeys []string `json:"tagKeys,omitempty"`

	// Unsupported are the features of the spec that the server does not implement,
	// sorted.
	//
	// +listType=set
	// +optional
	Unsupported []string `json:"unsupported,omitempty"`
}
