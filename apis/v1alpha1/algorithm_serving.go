// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Probes find out when a replica can serve.
type Probes struct {
	// Path that answers with a status from 200 to 399 while the replica can serve, by
	// HTTP GET on spec.port. Default: a replica can serve when its port accepts
	// connections. A replica that does not answer any more gets no requests; it is
	// started again only when its port has refused connections for a minute.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[-a-zA-Z0-9._~/%?=&]*$')",message="must be an absolute path of a URL"
	// +kubebuilder:example="/healthz"
	// +optional
	Path string `json:"path,omitempty"`

	// StartupSeconds is how long a replica may take to serve for the first time,
	// for instance to load its model. After that it is started again.
	//
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=7200
	// +kubebuilder:example=600
	// +optional
	StartupSeconds *int32 `json:"startupSeconds,omitempty"`

	// WarmUp sends requests to a replica before callers reach it, for servers whose
	// first answers are slow. It takes port 9901 of the replica.
	//
	// +optional
	WarmUp *WarmUp `json:"warmUp,omitempty"`
}

// WarmUp sends requests to a replica before callers reach it.
type WarmUp struct {
	// Path of the requests.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[-a-zA-Z0-9._~/%?=&]*$')",message="must be an absolute path of a URL"
	// +kubebuilder:example="/predict"
	Path string `json:"path"`

	// Requests is their number. The last five of them, or all of fewer, must be
	// answered with a status from 200 to 299.
	//
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:example=50
	// +optional
	Requests *int32 `json:"requests,omitempty"`

	// Body of the requests. With it they are sent by POST, without it by GET.
	//
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:example="{\"user\": 1}"
	// +optional
	Body string `json:"body,omitempty"`

	// ContentType of the body.
	//
	// +kubebuilder:default="application/json"
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-a-zA-Z0-9.+_]+/[-a-zA-Z0-9.+_]+(; *[-a-zA-Z0-9=.]+)?$')",message="must be a media type, for instance application/json"
	// +kubebuilder:example="application/json"
	// +optional
	ContentType string `json:"contentType,omitempty"`
}

// Route makes an Algorithm reachable by way of a Gateway of the Gateway API.
type Route struct {
	// Host that the route is for. Default: every host of the Gateway's listener.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a host name in lower case, which may begin with '*.', for instance reco.example.org"
	// +kubebuilder:example="reco.example.org"
	// +optional
	Host string `json:"host,omitempty"`

	// Path that requests begin with. It is passed on as it is.
	//
	// +kubebuilder:default="/"
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/([-a-zA-Z0-9._~/]|%[0-9a-fA-F]{2})*$') && !self.contains('//') && !self.matches('/[.]{1,2}(/|$)') && !self.lowerAscii().contains('%2f')",message="must be an absolute path of a URL, without a query, '//', %2f and steps that are . or .."
	// +kubebuilder:example="/predict"
	// +optional
	Path string `json:"path,omitempty"`

	// Timeout after which the Gateway gives up a request. Default: the Gateway's
	// own. Not every Gateway implements it; the condition RouteAccepted tells.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1ms') && duration(self) <= duration('1h')",message="must be a time from 1ms to 1h, for instance 2s"
	// +kubebuilder:example="2s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Gateway that serves the route. Default: the platform's setting.
	//
	// +optional
	Gateway *GatewayReference `json:"gateway,omitempty"`
}

// GatewayReference names a Gateway of the Gateway API.
type GatewayReference struct {
	// Name of the Gateway.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="shared"
	Name string `json:"name"`

	// Namespace of the Gateway. Default: this namespace.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace: lower case letters, digits and '-', with a letter or digit at both ends"
	// +kubebuilder:example="gateway"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// SectionName is the listener of the Gateway. Default: all that take the route.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a listener: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="web"
	// +optional
	SectionName string `json:"sectionName,omitempty"`
}

// Access says who may call the Algorithm. It becomes a NetworkPolicy, which counts
// where the cluster's network enforces them.
type Access struct {
	// From are those who may, beside what serves the Gateway of spec.route and what
	// scrapes metrics; the platform's settings say which namespaces those are in. An
	// empty list lets nobody else in.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:example={{"namespace":"checkout","podLabels":{"app":"web"}}}
	From []Caller `json:"from"`
}

// Caller is a set of pods that may call the Algorithm.
type Caller struct {
	// Namespace of the pods, or * for every namespace. Default: this namespace.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace, or * for every namespace"
	// +kubebuilder:example="checkout"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// PodLabels that the pods carry. Default: every pod of the namespace.
	//
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="keys must be those of labels, for instance app.kubernetes.io/name"
	// +kubebuilder:example={"app":"web"}
	// +optional
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`
}

// Rotation says what a change of a Secret does.
//
// +kubebuilder:validation:Enum=Restartless;Rolling
type Rotation string

// What a change of a Secret does.
const (
	// RotateRestartless lets the files change under the running container, which
	// takes up to about a minute; the container has to read them again.
	RotateRestartless Rotation = "Restartless"
	// RotateRolling makes a new revision of the change, for containers that read the
	// files only once.
	RotateRolling Rotation = "Rolling"
)

// MountedSecret is a Secret whose keys are mounted as files.
type MountedSecret struct {
	// Name of the Secret.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="reco-license"
	Name string `json:"name"`

	// MountPath is the folder the files appear in. Default: the name of the Secret
	// below /etc/secrets.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^:]+$') && self != '/dev/shm'",message="must be an absolute path without ':', other than / and /dev/shm"
	// +kubebuilder:example="/etc/secrets/reco-license"
	// +optional
	MountPath string `json:"mountPath,omitempty"`

	// Rotate says what a change of the Secret does. Restartless: the files change
	// under the running container, within about a minute. Rolling: the same, and a new
	// revision starts, for containers that read the files only once.
	//
	// +kubebuilder:default=Restartless
	// +kubebuilder:example=Rolling
	// +optional
	Rotate Rotation `json:"rotate,omitempty"`
}
