// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"net/http"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A Backend is a kind of outside service, by the name of its field in a config.
type Backend string

// The services that a config can be about.
const (
	S3          Backend = "s3"
	MLflow      Backend = "mlflow"
	Prometheus  Backend = "prometheus"
	OpenLineage Backend = "openLineage"
)

// A Connection is what a client is made of: what a config says, with the content of the Secrets that it names. It is shared by
// everybody who uses the config and is not changed.
type Connection struct {
	// Backend that the config is about. The field of the same name is set.
	Backend     Backend
	S3          *v1alpha1.S3Config
	MLflow      *v1alpha1.MLflowConfig
	Prometheus  *v1alpha1.PrometheusConfig
	OpenLineage *v1alpha1.OpenLineageConfig

	// Shared means that it is a ClusterProviderConfig.
	Shared bool

	// Namespace of the ProviderConfig, or empty when it is shared.
	Namespace string

	// CABundle of the backend.
	CABundle string

	// Key opens an S3 server, Workload is the key for users of buckets, or nil.
	Key      AccessKey
	Workload *AccessKey

	// Authorize puts credentials into requests to MLflow, Prometheus and OpenLineage.
	Authorize func(*http.Request)

	// HTTP sends requests. It is guarded, waits when the service asks for it, limits answers and follows no redirect.
	HTTP *http.Client
}

// An AccessKey opens an S3 server.
type AccessKey struct {
	ID, Secret, Session string
}

// A Tenant is on whose behalf a managed resource acts, and what it may do.
type Tenant struct {
	// Cluster is the UID of the namespace kube-system, which stands for the cluster.
	Cluster string

	// Namespace of the managed resource.
	Namespace string

	// Config names the config, for people.
	Config string

	// Shared means that others use the same service with the same credentials.
	Shared bool

	// Adoption means that a managed resource may ask for what has no owner.
	Adoption bool

	// Workload is the key for users of the namespace's buckets, if each namespace has one of its own.
	Workload AccessKey

	// BucketPrefix begins the names of buckets, {namespace} being replaced.
	BucketPrefix string
}

// Owner is the value of the owner tag of a managed resource of this tenant. It stays the same when the managed resource is
// deleted and made again.
func (t Tenant) Owner(name string) string { return t.ground() + name }

// Owns reports whether an owner tag names a managed resource of this tenant.
func (t Tenant) Owns(tag string) bool {
	g := t.ground()
	return len(tag) > len(g) && tag[:len(g)] == g
}

// ground begins the owner tags of a tenant. Neither a UID nor the name of a namespace has a slash.
func (t Tenant) ground() string { return t.Cluster + "/" + t.Namespace + "/" }
