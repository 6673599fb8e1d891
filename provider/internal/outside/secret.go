// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// secrets that a config names, read once each.
type secrets struct {
	resolver *Resolver
	config   *config

	// versions of what was read, to see whether it has changed.
	versions []string
}

// read the Secret that a reference names, which must have these keys.
func (s *secrets) read(ctx context.Context, field string, ref v1alpha1.SecretReference, keys ...string) (map[string]string, error) {
	o := &corev1.Secret{}
	err := s.resolver.kube.Get(ctx, types.NamespacedName{Namespace: s.config.secrets, Name: ref.Name}, o)
	if kerrors.IsNotFound(err) {
		return nil, &Failure{
			Reason:  v1alpha1.ReasonCredentialsMissing,
			Message: fmt.Sprintf("Secret %q, which %s names in %s, is not there", ref.Name, s.config.name(), field),
			Remedy:  fmt.Sprintf("make it in namespace %q with the keys %s", s.config.secrets, strings.Join(keys, ", ")),
			Cause:   err,
		}
	}
	if err != nil {
		return nil, InCluster("cannot get Secret %q: %w", ref.Name, err)
	}
	s.versions = append(s.versions, string(o.GetUID())+"/"+o.GetResourceVersion())
	values := make(map[string]string, len(o.Data))
	for k, v := range o.Data {
		// Editors and echo leave a line break at the end, which no header takes.
		values[k] = strings.TrimRight(string(v), "\r\n")
	}
	for _, k := range keys {
		if values[k] == "" {
			return nil, &Failure{
				Reason:  v1alpha1.ReasonCredentialsMissing,
				Message: fmt.Sprintf("Secret %q, which %s names in %s, has no %q", ref.Name, s.config.name(), field, k),
				Remedy:  "set the keys " + strings.Join(keys, ", "),
			}
		}
	}
	return values, nil
}

// accessKey of an S3 server.
func (s *secrets) accessKey(ctx context.Context, field string, c v1alpha1.S3Credentials) (AccessKey, error) {
	v, err := s.read(ctx, field, c.SecretRef, v1alpha1.KeyAccessKeyID, v1alpha1.KeySecretAccessKey)
	if err != nil {
		return AccessKey{}, err
	}
	return AccessKey{
		ID:      v[v1alpha1.KeyAccessKeyID],
		Secret:  v[v1alpha1.KeySecretAccessKey],
		Session: v[v1alpha1.KeySessionToken],
	}, nil
}

// authorization for requests over HTTP.
func (s *secrets) authorization(ctx context.Context, field string, c *v1alpha1.HTTPCredentials) (func(*http.Request), error) {
	switch {
	case c == nil:
		return func(*http.Request) {}, nil
	case c.Basic != nil:
		v, err := s.read(ctx, field+".basic.secretRef", c.Basic.SecretRef, v1alpha1.KeyUsername, v1alpha1.KeyPassword)
		if err != nil {
			return nil, err
		}
		return func(r *http.Request) { r.SetBasicAuth(v[v1alpha1.KeyUsername], v[v1alpha1.KeyPassword]) }, nil
	case c.Bearer != nil:
		v, err := s.read(ctx, field+".bearer.secretRef", c.Bearer.SecretRef, v1alpha1.KeyToken)
		if err != nil {
			return nil, err
		}
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+v[v1alpha1.KeyToken]) }, nil
	default:
		return nil, &Failure{
			Reason:  v1alpha1.ReasonInvalidConfig,
			Message: field + " is empty",
			Remedy:  "set basic or bearer",
		}
	}
}

// connection that c describes, and the versions of the Secrets that it is made of.
func (r *Resolver) connection(ctx context.Context, c *config) (*Connection, string, error) {
	s := &secrets{resolver: r, config: c}
	n := &Connection{
		Backend: c.backend, S3: c.s3, MLflow: c.mlflow, Prometheus: c.prometheus, OpenLineage: c.openLineage,
		Shared: c.shared, Namespace: c.object.GetNamespace(),
	}
	var err error
	switch c.backend {
	case S3:
		n.CABundle = c.s3.CABundle
		err = s.s3(ctx, n)
	case MLflow:
		n.CABundle = c.mlflow.CABundle
		n.Authorize, err = s.authorization(ctx, "spec.mlflow.credentials", c.mlflow.Credentials)
	case Prometheus:
		n.CABundle = c.prometheus.CABundle
		n.Authorize, err = s.authorization(ctx, "spec.prometheus.credentials", c.prometheus.Credentials)
	case OpenLineage:
		n.CABundle = c.openLineage.CABundle
		n.Authorize, err = s.authorization(ctx, "spec.openLineage.credentials", c.openLineage.Credentials)
	}
	return n, strings.Join(s.versions, " "), err
}

func (s *secrets) s3(ctx context.Context, n *Connection) error {
	key, err := s.accessKey(ctx, "spec.s3.credentials.secretRef", n.S3.Credentials)
	if err != nil {
		return err
	}
	n.Key = key
	if n.S3.WorkloadCredentials == nil || s.config.perNamespace {
		return nil
	}
	workload, err := s.accessKey(ctx, "spec.s3.workloadCredentials.secretRef", *n.S3.WorkloadCredentials)
	if err != nil {
		return err
	}
	n.Workload = &workload
	return nil
}

// workload is the key for users of the buckets of a namespace, or none when they have the one of the config.
func (r *Resolver) workload(ctx context.Context, c *config, namespace string) (AccessKey, error) {
	if !c.perNamespace {
		return AccessKey{}, nil
	}
	of := *c.s3.WorkloadCredentials
	of.SecretRef.Name += "-" + namespace
	return (&secrets{resolver: r, config: c}).accessKey(ctx, "spec.s3.workloadKeyPerNamespace", of)
}
