// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

const (
	// TagOwner marks a bucket as the external resource of one Bucket. Its value is the UID of the cluster's namespace
	// kube-system, the namespace and the name of the Bucket, joined by slashes. A bucket with another owner is never
	// changed.
	TagOwner = "capstan.dev/owner"

	// AnnotationCreating marks a Bucket whose creation failed, although the bucket may exist: there was no response, or
	// its tag could not be set.
	AnnotationCreating = "storage.capstan.dev/creating"
)

// Keys of the connection Secret of a Bucket. The key ca.crt exists only when the config has a caBundle, the last three
// only when it has workloadCredentials.
const (
	KeyEndpoint        = "endpoint"
	KeyRegion          = "region"
	KeyBucket          = "bucket"
	KeyCA              = "ca.crt"
	KeyAccessKeyID     = "accessKeyId"
	KeySecretAccessKey = "secretAccessKey"
	KeySessionToken    = "sessionToken"
)

// A Bucket is a bucket on an S3 server. Its name there is the external name. The default is the name of the Bucket,
// after the prefix that a ClusterProviderConfig gives to every namespace.
//
// A feature that is not in the spec is not changed on the server. A feature that is removed from the spec is removed
// from the bucket. A bucket with objects is not deleted, unless forceDestroy is true.
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

	// Spec is the desired state of the bucket.
	Spec BucketSpec `json:"spec"`

	// Status is the observed state of the bucket.
	//
	// +optional
	Status BucketStatus `json:"status,omitempty"`
}

// BucketList is a list of Buckets.
//
// +kubebuilder:object:root=true
type BucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bucket `json:"items"`
}

// BucketSpec is the desired state of a bucket.
type BucketSpec struct {
	// ManagementPolicies are what the provider can do with the bucket. ["Observe"] only reads an existing bucket.
	// Policies without Delete keep the bucket when the Bucket is deleted. Default: ["*"].
	//
	// +kubebuilder:default={"*"}
	// +kubebuilder:example={"Observe","Create","Update","LateInitialize"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ProviderConfigReference names the ProviderConfig of this namespace, or the ClusterProviderConfig, with the
	// address of the S3 server. Default: the ClusterProviderConfig s3.
	//
	// +kubebuilder:default={"kind": "ClusterProviderConfig", "name": "s3"}
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "s3"}
	// +kubebuilder:validation:XValidation:rule="self.kind in ['ProviderConfig', 'ClusterProviderConfig']",messageExpression="'providerConfigRef.kind: ' + self.kind + ' is neither ProviderConfig nor ClusterProviderConfig'"
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 63 && self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'providerConfigRef.name: ' + self.name + ' is not the name of a config: at most 63 lower case letters, digits, - and .'"
	// +optional
	ProviderConfigReference *xpv2.ProviderConfigReference `json:"providerConfigRef,omitempty"`

	// WriteConnectionSecretToReference names the Secret of this namespace with everything to connect to the bucket:
	// endpoint, region, bucket, and accessKeyId and secretAccessKey if the config has workloadCredentials.
	//
	// +kubebuilder:example={"name": "backups-s3"}
	// +optional
	WriteConnectionSecretToReference *xpv2.LocalSecretReference `json:"writeConnectionSecretToRef,omitempty"`

	// ForProvider is the desired state of the bucket.
	//
	// +kubebuilder:default={}
	// +optional
	ForProvider BucketParameters `json:"forProvider,omitempty"`
}

// BucketParameters are the desired state of a bucket.
//
// +kubebuilder:validation:XValidation:rule="has(self.region) == has(oldSelf.region)",message="region: cannot be added or removed later; make another Bucket"
// +kubebuilder:validation:XValidation:rule="has(self.objectLock) == has(oldSelf.objectLock)",message="objectLock: can be set only when a bucket is created; make another Bucket"
// +kubebuilder:validation:XValidation:rule="!has(self.objectLock) || !has(self.versioning) || self.versioning == 'Enabled'",message="versioning: must be Enabled with objectLock"
type BucketParameters struct {
	// Region of the bucket, which cannot change. Servers other than AWS receive it only if it is set here, and may
	// reject a region that is not their own. Default: the region of the config.
	//
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]{1,63}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="region: cannot be changed; make another Bucket"
	// +kubebuilder:example="eu-central-1"
	// +optional
	Region *string `json:"region,omitempty"`

	// Adopt allows the provider to take over an existing bucket of this name that has no owner. From then on the bucket
	// follows this spec, and is deleted as managementPolicies define. Default: false.
	//
	// +kubebuilder:default=false
	// +kubebuilder:example=false
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// ForceDestroy allows the deletion of every object, version and unfinished upload together with this Bucket.
	// Objects whose retention has not ended stay, and so does the bucket. Default: false.
	//
	// +kubebuilder:default=false
	// +kubebuilder:example=false
	// +optional
	ForceDestroy bool `json:"forceDestroy,omitempty"`

	// Versioning keeps old versions of objects: Enabled or Suspended. It can never be switched off again.
	//
	// +kubebuilder:validation:Enum=Enabled;Suspended
	// +kubebuilder:example=Enabled
	// +optional
	Versioning *string `json:"versioning,omitempty"`

	// ObjectLock prevents versions of objects from being deleted or overwritten during their retention. It enables
	// versioning. It can be set only when the bucket is created. A server without support rejects the bucket, and the
	// condition Connected reports that.
	//
	// +optional
	ObjectLock *ObjectLock `json:"objectLock,omitempty"`

	// Encryption of new objects by the server. Existing objects do not change.
	//
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`

	// LifecycleRules delete old objects. They are all rules of the bucket: other rules on the server are replaced.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=id
	// +optional
	LifecycleRules []LifecycleRule `json:"lifecycleRules,omitempty"`

	// Policy of the bucket, as a JSON document in the policy language of S3. The comparison ignores spelling
	// differences without a meaning. If the server rejects a policy, the condition Connected reports it and the
	// previous policy stays.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^\\\\s*[{](?s:.*)[}]\\\\s*$')",message="policy: must be a JSON object"
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=20480
	// +kubebuilder:example="{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"s3:GetObject\",\"Resource\":\"arn:aws:s3:::shop-assets/*\"}]}"
	// +optional
	Policy *string `json:"policy,omitempty"`

	// CORSRules allow web pages of other origins to use the bucket. The first matching rule applies. They are all rules
	// of the bucket: other rules on the server are replaced.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	CORSRules []CORSRule `json:"corsRules,omitempty"`

	// Tags of the bucket. Tags from other sources stay. Keys that begin with capstan.dev/ or aws: are reserved.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=45
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) >= 1 && size(k) <= 128 && size(self[k]) <= 256)",message="tags: a key must have 1 to 128 characters, a value at most 256"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('capstan.dev/') && !k.startsWith('aws:'))",message="tags: keys that begin with capstan.dev/ or aws: are reserved"
	// +kubebuilder:example={"team": "shop"}
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// PublicAccessBlock overrides policies and ACLs that would make the bucket public.
	//
	// +optional
	PublicAccessBlock *PublicAccessBlock `json:"publicAccessBlock,omitempty"`
}

// ObjectLock prevents versions of objects from being deleted or overwritten.
//
// +kubebuilder:example={"defaultRetention": {"mode": "Governance", "days": 30}}
type ObjectLock struct {
	// DefaultRetention of new objects. Default: only objects with their own retention have one.
	//
	// +optional
	DefaultRetention *Retention `json:"defaultRetention,omitempty"`
}

// Retention is how long a version of an object stays.
//
// +kubebuilder:validation:ExactlyOneOf=days;years
type Retention struct {
	// Mode: with Governance, users with a special permission can delete earlier; with Compliance no user can.
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
	// Algorithm: AES256 uses keys of the server, aws:kms uses keys of a key management service.
	//
	// +kubebuilder:validation:Enum={"AES256","aws:kms"}
	// +kubebuilder:example=AES256
	Algorithm string `json:"algorithm"`

	// KMSKeyID is the key of the key management service: an ID, an alias or an ARN. Default: the server's own key, or
	// the previous one.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="alias/backups"
	// +optional
	KMSKeyID *string `json:"kmsKeyId,omitempty"`

	// BucketKey uses one key of the key management service for the whole bucket instead of one for each object, which
	// saves requests.
	//
	// +kubebuilder:example=true
	// +optional
	BucketKey *bool `json:"bucketKey,omitempty"`
}

// A LifecycleRule deletes old objects.
//
// +kubebuilder:validation:XValidation:rule="has(self.expireAfterDays) || has(self.expireNoncurrentAfterDays) || has(self.abortUploadsAfterDays) || (has(self.expireDeleteMarkers) && self.expireDeleteMarkers)",message="lifecycleRules: a rule must have expireAfterDays, expireNoncurrentAfterDays, abortUploadsAfterDays or expireDeleteMarkers"
// +kubebuilder:validation:XValidation:rule="!has(self.expireDeleteMarkers) || !self.expireDeleteMarkers || !has(self.expireAfterDays)",message="expireDeleteMarkers: cannot be combined with expireAfterDays, which removes them anyway"
// +kubebuilder:validation:XValidation:rule="!has(self.keepNoncurrentVersions) || has(self.expireNoncurrentAfterDays)",message="keepNoncurrentVersions: needs expireNoncurrentAfterDays"
// +kubebuilder:validation:XValidation:rule="!has(self.abortUploadsAfterDays) || !has(self.tags)",message="abortUploadsAfterDays: cannot be combined with tags, because unfinished uploads have none"
// +kubebuilder:validation:XValidation:rule="!has(self.expireDeleteMarkers) || !self.expireDeleteMarkers || !has(self.tags)",message="expireDeleteMarkers: cannot be combined with tags, because delete markers have none"
type LifecycleRule struct {
	// ID of the rule, unique in the bucket.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:example="old-backups"
	ID string `json:"id"`

	// Prefix of the names of the objects that the rule applies to. Default: all objects.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:example="wal/"
	// +optional
	Prefix *string `json:"prefix,omitempty"`

	// Tags of the objects that the rule applies to. Default: all objects.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=10
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) >= 1 && size(k) <= 128 && size(self[k]) <= 256)",message="tags: a key must have 1 to 128 characters, a value at most 256"
	// +kubebuilder:example={"kind": "temporary"}
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// ExpireAfterDays deletes objects this many days after they were written.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	// +kubebuilder:example=90
	// +optional
	ExpireAfterDays *int32 `json:"expireAfterDays,omitempty"`

	// ExpireNoncurrentAfterDays deletes versions this many days after a newer version replaced them.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	// +kubebuilder:example=7
	// +optional
	ExpireNoncurrentAfterDays *int32 `json:"expireNoncurrentAfterDays,omitempty"`

	// KeepNoncurrentVersions is the number of replaced versions to keep, however old they are.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=3
	// +optional
	KeepNoncurrentVersions *int32 `json:"keepNoncurrentVersions,omitempty"`

	// ExpireDeleteMarkers removes markers of deleted objects without any version left.
	//
	// +kubebuilder:example=true
	// +optional
	ExpireDeleteMarkers bool `json:"expireDeleteMarkers,omitempty"`

	// AbortUploadsAfterDays removes the parts of unfinished uploads this many days after their start.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	// +kubebuilder:example=7
	// +optional
	AbortUploadsAfterDays *int32 `json:"abortUploadsAfterDays,omitempty"`
}

// A CORSRule allows web pages of other origins to use a bucket.
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

	// ExposeHeaders of responses that a page can read.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:example={"ETag"}
	// +listType=set
	// +optional
	ExposeHeaders []string `json:"exposeHeaders,omitempty"`

	// MaxAgeSeconds is how long a browser can cache this rule, in seconds.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:example=3600
	// +optional
	MaxAgeSeconds *int32 `json:"maxAgeSeconds,omitempty"`
}

// PublicAccessBlock overrides what would make a bucket public.
//
// +kubebuilder:example={"blockPublicAcls": true, "ignorePublicAcls": true, "blockPublicPolicy": true, "restrictPublicBuckets": true}
type PublicAccessBlock struct {
	// BlockPublicACLs rejects new ACLs that make objects public. Default: true.
	//
	// +kubebuilder:default=true
	// +kubebuilder:example=true
	// +optional
	BlockPublicACLs *bool `json:"blockPublicAcls,omitempty"`

	// IgnorePublicACLs ignores all ACLs that make objects public. Default: true.
	//
	// +kubebuilder:default=true
	// +kubebuilder:example=true
	// +optional
	IgnorePublicACLs *bool `json:"ignorePublicAcls,omitempty"`

	// BlockPublicPolicy rejects new policies that make the bucket public. Default: true.
	//
	// +kubebuilder:default=true
	// +kubebuilder:example=true
	// +optional
	BlockPublicPolicy *bool `json:"blockPublicPolicy,omitempty"`

	// RestrictPublicBuckets limits the effect of a public policy to users of the bucket's own account. Default: true.
	//
	// +kubebuilder:default=true
	// +kubebuilder:example=true
	// +optional
	RestrictPublicBuckets *bool `json:"restrictPublicBuckets,omitempty"`
}

// BucketStatus is the observed state of a bucket.
type BucketStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed state on the server.
	//
	// +optional
	AtProvider BucketObservation `json:"atProvider,omitempty"`
}

// BucketObservation is the observed state on the server.
type BucketObservation struct {
	// BucketName is the name of the bucket on the server.
	//
	// +optional
	BucketName string `json:"bucketName,omitempty"`

	// Endpoint is the URL of the server.
	//
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// Region of the bucket.
	//
	// +optional
	Region string `json:"region,omitempty"`

	// Owned reports whether this Bucket created or adopted the bucket. On a server without tags it is the only record
	// of the owner.
	//
	// +optional
	Owned bool `json:"owned,omitempty"`

	// Features that this Bucket has set, sorted. A feature that is listed here and no longer in the spec is removed
	// from the bucket.
	//
	// +listType=set
	// +optional
	Features []string `json:"features,omitempty"`

	// TagKeys that this Bucket has set, sorted.
	//
	// +listType=set
	// +optional
	TagKeys []string `json:"tagKeys,omitempty"`

	// Unsupported lists the features of the spec that the server does not implement, sorted.
	//
	// +listType=set
	// +optional
	Unsupported []string `json:"unsupported,omitempty"`
}
