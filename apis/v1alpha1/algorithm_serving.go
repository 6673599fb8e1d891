// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Probes define when a replica is ready.
type Probes struct {
	// Path for HTTP GET on spec.port that returns a status from 200 to 399 while the replica is ready. A replica that
	// stops responding gets no more requests. It restarts only after its port has refused connections for a minute.
	// With protocol GRPC it is / and the service of the gRPC health check (grpc.health.v1): / asks for the whole server.
	// Default: a replica is ready when its port accepts connections.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[-a-zA-Z0-9._~/%?=&]*$')",message="must be an absolute path of a URL"
	// +kubebuilder:example="/healthz"
	// +optional
	Path string `json:"path,omitempty"`

	// StartupSeconds is the time in seconds that a replica has to become ready for the first time, for instance to load
	// its model. After that it restarts. Default: 600.
	//
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=7200
	// +kubebuilder:example=600
	// +optional
	StartupSeconds *int32 `json:"startupSeconds,omitempty"`

	// WarmUp sends requests to a replica before it gets traffic, for servers whose first responses are slow. It uses
	// port 9901 of the pod.
	//
	// +optional
	WarmUp *WarmUp `json:"warmUp,omitempty"`
}

// WarmUp sends requests to a replica before it gets traffic.
type WarmUp struct {
	// Path of the requests.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[-a-zA-Z0-9._~/%?=&]*$')",message="must be an absolute path of a URL"
	// +kubebuilder:example="/predict"
	Path string `json:"path"`

	// Requests is their number. The last five, or all if there are fewer, must get a status from 200 to 299. Default:
	// 10.
	//
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:example=50
	// +optional
	Requests *int32 `json:"requests,omitempty"`

	// Body of the requests. With a body the method is POST, otherwise GET.
	//
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:example="{\"user\": 1}"
	// +optional
	Body string `json:"body,omitempty"`

	// ContentType of the body. Default: application/json.
	//
	// +kubebuilder:default="application/json"
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-a-zA-Z0-9.+_]+/[-a-zA-Z0-9.+_]+(; *[-a-zA-Z0-9=.]+)?$')",message="must be a media type, for instance application/json"
	// +kubebuilder:example="application/json"
	// +optional
	ContentType string `json:"contentType,omitempty"`
}

// Route makes an Algorithm reachable through a Gateway of the Gateway API, by an HTTPRoute, or by a GRPCRoute with protocol GRPC.
type Route struct {
	// Host of the route. Default: every host of the Gateway's listener.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a host name in lower case, which may begin with '*.', for instance reco.example.org"
	// +kubebuilder:example="reco.example.org"
	// +optional
	// +capstan:form:title="Host name outside the cluster",order=90,group=basic
	Host string `json:"host,omitempty"`

	// Path prefix of the requests, which the Gateway does not rewrite. With protocol GRPC it is /. Default: /.
	//
	// +kubebuilder:default="/"
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/([-a-zA-Z0-9._~/]|%[0-9a-fA-F]{2})*$') && !self.contains('//') && !self.matches('/[.]{1,2}(/|$)') && !self.lowerAscii().contains('%2f')",message="must be an absolute path of a URL, without a query, '//', %2f, and the segments . and .."
	// +kubebuilder:example="/predict"
	// +optional
	Path string `json:"path,omitempty"`

	// Timeout after which the Gateway aborts a request, from 1ms to 1h. Not every Gateway implements it; the condition
	// RouteAccepted reports that. Default: the Gateway's own timeout.
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

	// SectionName is the listener of the Gateway. Default: every listener that accepts the route.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a listener: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="web"
	// +optional
	SectionName string `json:"sectionName,omitempty"`
}

// Client is a set of pods that can send requests to the Algorithm.
type Client struct {
	// Namespace of the pods, or * for every namespace. Default: this namespace.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace, or * for every namespace"
	// +kubebuilder:example="checkout"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// PodLabels that the pods have. Default: every pod of the namespace.
	//
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="keys must be label keys, for instance app.kubernetes.io/name"
	// +kubebuilder:example={"app":"web"}
	// +optional
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`
}

// Rotation is what a change of a Secret does.
//
// +kubebuilder:validation:Enum=Restartless;Rolling
type Rotation string

// What a change of a Secret does.
const (
	// RotateRestartless updates the files in the running container within about a minute. The container must read them
	// again.
	RotateRestartless Rotation = "Restartless"
	// RotateRolling also makes a new revision, for containers that read the files only once.
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

	// Rotate is what a change of the Secret does. Restartless updates the files in the running container within about a
	// minute. Rolling also makes a new revision, for containers that read the files only once. Default: Restartless.
	//
	// +kubebuilder:default=Restartless
	// +kubebuilder:example=Rolling
	// +optional
	Rotate Rotation `json:"rotate,omitempty"`
}
