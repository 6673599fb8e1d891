// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// The kinds of config.
const (
	KindProviderConfig        = "ProviderConfig"
	KindClusterProviderConfig = "ClusterProviderConfig"
)

// A Resolver finds what a managed resource's reference leads to. Its client reads configs from a cache and Secrets from the API
// server.
type Resolver struct {
	kube  client.Client
	guard *Guard
	track resource.ModernTracker

	mu      sync.Mutex
	cluster string
}

// NewResolver with a client and the guard of tenants' connections.
func NewResolver(kube client.Client, guard *Guard) *Resolver {
	return &Resolver{
		kube:  kube,
		guard: guard,
		track: resource.NewProviderConfigUsageTracker(kube, &v1alpha1.ProviderConfigUsage{}),
	}
}

// A config is what both kinds of config have in common.
type config struct {
	kind    string
	object  metav1.Object
	backend Backend

	s3          *v1alpha1.S3Config
	mlflow      *v1alpha1.MLflowConfig
	prometheus  *v1alpha1.PrometheusConfig
	openLineage *v1alpha1.OpenLineageConfig

	// secrets is the namespace of the Secrets that it names.
	secrets string

	shared       bool
	namespaces   []string
	adoption     bool
	bucketPrefix string
	// perNamespace means that the key for users of buckets is another one for each namespace.
	perNamespace bool
	retry        *v1alpha1.Retry
}

// name for people.
func (c *config) name() string { return fmt.Sprintf("%s %q", c.kind, c.object.GetName()) }

// version changes with everything that a client is made of, except Secrets. It is not the resource version, which changes with
// every user that is counted.
func (c *config) version() string {
	return fmt.Sprintf("%s/%d", c.object.GetUID(), c.object.GetGeneration())
}

// resolve the config that mg names, and record that mg uses it.
func (r *Resolver) resolve(ctx context.Context, mg resource.ModernManaged, want Backend) (*config, error) {
	ref := mg.GetProviderConfigReference()
	if ref == nil {
		return nil, &Failure{
			Reason:  v1alpha1.ReasonConfigNotFound,
			Message: "spec.providerConfigRef is not set",
			Remedy:  "set its kind and name",
		}
	}

	// Where a namespace goes nothing can be made any more, and what is deleted needs no usage that protects it.
	err := r.track.Track(ctx, mg)
	if leaving := meta.WasDeleted(mg) && kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause); err != nil && !leaving {
		return nil, InCluster("cannot record the use of %s %q: %w", ref.Kind, ref.Name, err)
	}
	c, err := r.config(ctx, *ref, mg.GetNamespace())
	if err != nil {
		return nil, err
	}
	if c.backend != want {
		return nil, &Failure{
			Reason:  v1alpha1.ReasonConfigOfOtherBackend,
			Message: fmt.Sprintf("%s is for %s and not for %s", c.name(), c.backend, want),
			Remedy:  "name another config in spec.providerConfigRef",
		}
	}
	if !c.allows(mg.GetNamespace()) {
		return nil, &Failure{
			Reason:  v1alpha1.ReasonNamespaceNotAllowed,
			Message: fmt.Sprintf("%s is not for namespace %q", c.name(), mg.GetNamespace()),
			Remedy:  "ask the platform team to add it to spec.allowedNamespaces, or use a ProviderConfig of your own",
		}
	}
	return c, nil
}

// allows a namespace to use this config.
func (c *config) allows(namespace string) bool {
	return len(c.namespaces) == 0 || slices.ContainsFunc(c.namespaces, func(pattern string) bool {
		ok, err := path.Match(pattern, namespace)
		return err == nil && ok
	})
}

// config that a reference from a namespace leads to.
func (r *Resolver) config(ctx context.Context, ref xpv2.ProviderConfigReference, namespace string) (*config, error) {
	switch ref.Kind {
	case KindProviderConfig:
		pc := &v1alpha1.ProviderConfig{}
		if err := r.get(ctx, ref, namespace, pc); err != nil {
			return nil, err
		}
		return newConfig(pc)
	case KindClusterProviderConfig:
		pc := &v1alpha1.ClusterProviderConfig{}
		if err := r.get(ctx, ref, "", pc); err != nil {
			return nil, err
		}
		return newSharedConfig(pc)
	default:
		return nil, &Failure{
			Reason:  v1alpha1.ReasonConfigNotFound,
			Message: fmt.Sprintf("spec.providerConfigRef.kind %q is not a kind of config", ref.Kind),
			Remedy:  "use ProviderConfig or ClusterProviderConfig",
		}
	}
}

func (r *Resolver) get(ctx context.Context, ref xpv2.ProviderConfigReference, namespace string, o client.Object) error {
	err := r.kube.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, o)
	if kerrors.IsNotFound(err) {
		where := ""
		if namespace != "" {
			where = fmt.Sprintf(" in namespace %q", namespace)
		}
		return &Failure{
			Reason:  v1alpha1.ReasonConfigNotFound,
			Message: fmt.Sprintf("there is no %s %q%s", ref.Kind, ref.Name, where),
			Remedy:  "make it, or name another one in spec.providerConfigRef",
			Cause:   err,
		}
	}
	if err != nil {
		return InCluster("cannot get %s %q: %w", ref.Kind, ref.Name, err)
	}
	return nil
}

func newConfig(pc *v1alpha1.ProviderConfig) (*config, error) {
	c := &config{
		kind:        KindProviderConfig,
		object:      pc,
		s3:          pc.Spec.S3,
		mlflow:      pc.Spec.MLflow,
		prometheus:  pc.Spec.Prometheus,
		openLineage: pc.Spec.OpenLineage,
		secrets:     pc.GetNamespace(),
		adoption:    true,
		retry:       pc.Spec.Retry,
	}
	return c, c.choose()
}

func newSharedConfig(pc *v1alpha1.ClusterProviderConfig) (*config, error) {
	c := &config{
		kind:        KindClusterProviderConfig,
		object:      pc,
		mlflow:      pc.Spec.MLflow,
		prometheus:  pc.Spec.Prometheus,
		openLineage: pc.Spec.OpenLineage,
		secrets:     pc.Spec.SecretsNamespace,
		shared:      true,
		namespaces:  pc.Spec.AllowedNamespaces,
		adoption:    pc.Spec.Adoption == v1alpha1.AdoptionUnowned,
		retry:       pc.Spec.Retry,
	}
	if s := pc.Spec.S3; s != nil {
		c.s3 = &s.S3Config
		c.perNamespace = s.WorkloadKeyPerNamespace && s.WorkloadCredentials != nil
		if s.BucketPrefix != nil {
			c.bucketPrefix = *s.BucketPrefix
		}
	}
	return c, c.choose()
}

// choose the one backend.
func (c *config) choose() error {
	switch {
	case c.s3 != nil:
		c.backend = S3
	case c.mlflow != nil:
		c.backend = MLflow
	case c.prometheus != nil:
		c.backend = Prometheus
	case c.openLineage != nil:
		c.backend = OpenLineage
	default:
		return &Failure{
			Reason:  v1alpha1.ReasonInvalidConfig,
			Message: c.name() + " has no backend",
			Remedy:  "set one of spec.s3, spec.mlflow, spec.prometheus and spec.openLineage",
		}
	}
	return nil
}

// tenant that uses c from a namespace.
func (r *Resolver) tenant(ctx context.Context, c *config, namespace string) (Tenant, error) {
	id, err := r.clusterID(ctx)
	if err != nil {
		return Tenant{}, err
	}
	return Tenant{
		Cluster:      id,
		Namespace:    namespace,
		Config:       c.name(),
		Shared:       c.shared,
		Adoption:     c.adoption,
		BucketPrefix: strings.ReplaceAll(c.bucketPrefix, "{namespace}", namespace),
	}, nil
}

// clusterID is the UID of the namespace kube-system: it exists in every cluster and is never recreated.
func (r *Resolver) clusterID(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cluster != "" {
		return r.cluster, nil
	}

	// Only the metadata, and only of this one: the provider may not list namespaces.
	ns := &corev1.Namespace{}
	if err := r.kube.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, ns); err != nil {
		return "", InCluster("cannot get the namespace that identifies this cluster: %w", err)
	}
	if ns.GetUID() == "" {
		return "", InCluster("cannot identify this cluster: its namespace kube-system has no UID")
	}
	r.cluster = string(ns.GetUID())
	return r.cluster, nil
}
