// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/engine"
	"github.com/capstan-dev/capstan/provider/access/internal/mysql"
	"github.com/capstan-dev/capstan/provider/access/internal/postgres"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/password"
)

var (
	_ managed.TypedExternalConnector[*v1alpha1.Access] = &connector{}
	_ managed.TypedExternalClient[*v1alpha1.Access]    = &external{}
)

// connectTimeout bounds how long a connection takes to be made.
const connectTimeout = 5 * time.Second

// A connector of Accesses with their servers.
type connector struct {
	kube   client.Reader
	guard  *outside.Guard
	lookup func(ctx context.Context, host string) ([]string, error)
	proofs *proofs
	idle   *idleness
}

func newConnector(kube client.Reader, guard *outside.Guard) *connector {
	return &connector{
		kube:   kube,
		guard:  guard,
		lookup: net.DefaultResolver.LookupHost,
		proofs: newProofs(time.Now),
		idle:   newIdleness(time.Now),
	}
}

// Connect does not connect yet: the deletion of an Access must not need a server.
func (c *connector) Connect(_ context.Context, cr *v1alpha1.Access) (managed.TypedExternalClient[*v1alpha1.Access], error) {
	return &external{connector: c, cr: cr}, nil
}

// external is the server of one Access, for one reconcile.
type external struct {
	*connector

	cr *v1alpha1.Access

	// server, once it is known how to connect.
	server engine.Server
}

// Disconnect from the server, if there is a connection.
func (e *external) Disconnect(ctx context.Context) error {
	if e.server != nil {
		e.server.Disconnect(ctx)
	}
	return nil
}

// at gives the server. It does not connect yet.
func (e *external) at(ctx context.Context) (engine.Server, error) {
	if e.server != nil {
		return e.server, nil
	}
	t, err := e.target(ctx)
	if err != nil {
		return nil, err
	}
	if e.cr.Spec.ForProvider.Server.Engine == v1alpha1.EngineMySQL {
		e.server = mysql.New(t)
	} else {
		e.server = postgres.New(t)
	}
	return e.server, nil
}

// target of connections.
func (e *external) target(ctx context.Context) (engine.Target, error) {
	s := e.cr.Spec.ForProvider.Server
	if err := ownHost(s.Host, e.cr.GetNamespace()); err != nil {
		return engine.Target{}, err
	}
	password, err := e.secretToSend(ctx, "server.passwordSecretRef", s.PasswordSecretRef)
	if err != nil {
		return engine.Target{}, err
	}
	ca, err := e.secret(ctx, "server.caSecretRef", s.CASecretRef)
	if err != nil {
		return engine.Target{}, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return engine.Target{}, &outside.Failure{
			Reason:  apis.ReasonInvalidConfig,
			Message: fmt.Sprintf("server.caSecretRef: key %q of Secret %q holds no certificate", s.CASecretRef.Key, s.CASecretRef.Name),
			Remedy:  "put the certificates there that the server's is checked with, in PEM",
		}
	}
	port := uint16(postgres.DefaultPort)
	if s.Engine == v1alpha1.EngineMySQL {
		port = mysql.DefaultPort
	}
	if s.Port != nil {
		port = uint16(*s.Port) //nolint:gosec // The schema bounds it.
	}
	return engine.Target{
		Host: s.Host, Port: port, Username: s.Username, Password: string(password),
		TLS:    &tls.Config{ServerName: s.Host, RootCAs: roots, MinVersion: tls.VersionTLS12},
		Lookup: e.lookup,
		Dial:   e.guard.Dialer(net.Dialer{Timeout: connectTimeout}, e.cr.GetNamespace(), s.Host),
	}, nil
}

// ownHost refuses servers that are not a Service of the own namespace: an Access must not reach what only the provider can.
func ownHost(host, namespace string) error {
	if parts := strings.Split(host, "."); len(parts) == 3 && parts[0] != "" && parts[1] == namespace && parts[2] == "svc" {
		return nil
	}
	return &outside.Failure{
		Reason:  apis.ReasonAddressRefused,
		Message: fmt.Sprintf("server.host %q is not a Service of namespace %q", host, namespace),
		Remedy:  fmt.Sprintf("name one as <Service>.%s.svc", namespace),
	}
}

// secret is a key of a Secret of the own namespace. what names the field that refers to it.
func (c *external) secret(ctx context.Context, what string, ref v1alpha1.SecretKeyReference) ([]byte, error) {
	s, err := c.secretObject(ctx, what, ref)
	if err != nil {
		return nil, err
	}
	return keyOf(s, what, ref)
}

// keyOf a Secret, or a Failure.
func keyOf(s *corev1.Secret, what string, ref v1alpha1.SecretKeyReference) ([]byte, error) {
	if v := s.Data[ref.Key]; len(v) > 0 {
		return v, nil
	}
	return nil, &outside.Failure{
		Reason:  apis.ReasonCredentialsMissing,
		Message: fmt.Sprintf("%s: Secret %q has no key %q", what, ref.Name, ref.Key),
		Remedy:  "put it there, or name another",
	}
}

// secretToSend is a key of a Secret of the own namespace that is meant for servers. The author of an Access chooses the server, and need
// not be able to read Secrets.
func (c *external) secretToSend(ctx context.Context, what string, ref v1alpha1.SecretKeyReference) ([]byte, error) {
	s, err := c.secretObject(ctx, what, ref)
	if err != nil {
		return nil, err
	}
	if s.GetLabels()[credentialsv1alpha1.LabelCredential] == "" {
		return nil, &outside.Failure{
			Reason:  apis.ReasonCredentialsMissing,
			Message: fmt.Sprintf("%s: Secret %q is not of a Credential, so nothing of it is sent to a server", what, ref.Name),
			Remedy: fmt.Sprintf("name the Secret of a Credential, or label this one with %s=%s if it is for this server",
				credentialsv1alpha1.LabelCredential, ref.Name),
		}
	}
	return keyOf(s, what, ref)
}

func (c *external) secretObject(ctx context.Context, what string, ref v1alpha1.SecretKeyReference) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := c.kube.Get(ctx, client.ObjectKey{Namespace: c.cr.GetNamespace(), Name: ref.Name}, s)
	if kerrors.IsNotFound(err) {
		return nil, &outside.Failure{
			Reason:  apis.ReasonCredentialsMissing,
			Message: fmt.Sprintf("%s: there is no Secret %q", what, ref.Name),
			Remedy:  "make it, or name another",
		}
	}
	if err != nil {
		return nil, outside.InCluster("cannot get Secret %q of %s: %w", ref.Name, what, err)
	}
	return s, nil
}

// password of a login, or a Failure when it cannot be used.
func (c *external) password(ctx context.Context, l v1alpha1.Login) (string, error) {
	p, err := c.secretToSend(ctx, fmt.Sprintf("login %q", l.Name), l.PasswordSecretRef)
	if err != nil {
		return "", err
	}
	if err := password.Check(p); err != nil {
		return "", &outside.Failure{
			Reason: apis.ReasonInvalidConfig,
			Message: fmt.Sprintf("login %q: key %q of Secret %q is no password that every client understands: %v",
				l.Name, l.PasswordSecretRef.Key, l.PasswordSecretRef.Name, err),
			Remedy: "choose another password",
		}
	}
	return string(p), nil
}
