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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/password"
)

var (
	_ managed.TypedExternalConnector[*v1alpha1.Access] = &connector{}
	_ managed.TypedExternalClient[*v1alpha1.Access]    = &external{}
)

const (
	// connectTimeout bounds how long a connection takes to be made, log-in included.
	connectTimeout = 5 * time.Second

	// Settings of our sessions, as PostgreSQL takes them. No statement waits long: locks in a tenant's database are not ours to
	// wait for.
	statementTimeout = "30s"
	lockTimeout      = "5s"

	// searchPath finds what PostgreSQL ships and no object that a tenant created in a database.
	searchPath = "pg_catalog, pg_temp"

	// maintenance is the database that is there before any other.
	maintenance = "postgres"

	// applicationName identifies the provider in pg_stat_activity.
	applicationName = "provider-capstan"

	defaultPort = 5432
)

// A connector of Accesses with their servers.
type connector struct {
	kube   client.Reader
	guard  *outside.Guard
	lookup pgconn.LookupFunc
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

// external is the server of one Access, for one reconcile. It has one connection at a time, with one database.
type external struct {
	*connector

	cr *v1alpha1.Access

	// base is how to connect, once it was read.
	base *pgx.ConnConfig

	conn     *pgx.Conn
	database string

	// version of the server, 0 until it is known.
	version int
}

// Disconnect from the server, if there is a connection.
func (e *external) Disconnect(ctx context.Context) error {
	if e.conn == nil {
		return nil
	}
	conn := e.conn
	e.conn = nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()

	// A server that is gone has closed it, too.
	_ = conn.Close(ctx)
	return nil
}

// in gives the connection with a database, as the role that the provider has.
func (e *external) in(ctx context.Context, database string) (*pgx.Conn, error) {
	if e.conn != nil && !e.conn.IsClosed() && e.database == database {
		return e.conn, nil
	}
	_ = e.Disconnect(ctx)
	cfg, err := e.config(ctx)
	if err != nil {
		return nil, err
	}
	cfg.Database = database

	// Servers refuse settings that they do not know.
	if e.version >= version17 {
		cfg.RuntimeParams["transaction_timeout"] = statementTimeout
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}

	// The owner of a database can have every session in it begin as another role.
	if _, err := conn.Exec(ctx, "SET ROLE NONE"); err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	e.conn, e.database = conn, database
	return conn, nil
}

// config of connections, a copy.
func (e *external) config(ctx context.Context) (*pgx.ConnConfig, error) {
	if e.base != nil {
		return e.base.Copy(), nil
	}
	s := e.cr.Spec.ForProvider.Server
	if err := ownHost(s.Host, e.cr.GetNamespace()); err != nil {
		return nil, err
	}
	password, err := e.secretToSend(ctx, "server.passwordSecretRef", s.PasswordSecretRef)
	if err != nil {
		return nil, err
	}
	ca, err := e.secret(ctx, "server.caSecretRef", s.CASecretRef)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, &outside.Failure{
			Reason:  apis.ReasonInvalidConfig,
			Message: fmt.Sprintf("server.caSecretRef: key %q of Secret %q holds no certificate", s.CASecretRef.Key, s.CASecretRef.Name),
			Remedy:  "put the certificates there that the server's is checked with, in PEM",
		}
	}

	// Nothing comes from the environment or files of the provider: every setting that they could make is made here.
	cfg, err := pgx.ParseConfig("host=127.0.0.1 port=1 user=none password=none dbname=none sslmode=disable passfile=/dev/null")
	if err != nil {
		return nil, fmt.Errorf("cannot make a configuration of PostgreSQL: %w", err)
	}
	cfg.Host, cfg.Port, cfg.User, cfg.Password = s.Host, defaultPort, s.Username, string(password)
	if s.Port != nil {
		cfg.Port = uint16(*s.Port) //nolint:gosec // The schema bounds it.
	}
	cfg.TLSConfig = &tls.Config{ServerName: s.Host, RootCAs: roots, MinVersion: tls.VersionTLS12}
	cfg.Fallbacks = nil
	cfg.ConnectTimeout = connectTimeout
	// The name is looked up before, so that the dialler gets addresses.
	cfg.DialFunc = pgconn.DialFunc(e.guard.Dialer(net.Dialer{Timeout: connectTimeout}, e.cr.GetNamespace(), s.Host))
	cfg.LookupFunc = e.lookup
	cfg.KerberosSrvName, cfg.KerberosSpn = "", ""
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.RuntimeParams = map[string]string{
		"application_name":                    applicationName,
		"search_path":                         searchPath,
		"statement_timeout":                   statementTimeout,
		"lock_timeout":                        lockTimeout,
		"idle_in_transaction_session_timeout": statementTimeout,
		"idle_session_timeout":                "0",
		"default_transaction_read_only":       "off",
		"standard_conforming_strings":         "on",
		"client_encoding":                     "UTF8",
	}
	e.base = cfg
	return cfg.Copy(), nil
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
