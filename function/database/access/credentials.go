// SPDX-License-Identifier: Apache-2.0

// Package access composes credentials, logins and grants of consumers, and their rotation.
package access

import (
	"slices"
	"strconv"
	"strings"

	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	accessv1alpha1 "github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/objects"
)

// accessMetadata names the generation, so that the provider reconciles logins as soon as clients are switched to another one.
func accessMetadata(s *facts.Cluster) *applymetav1.ObjectMetaApplyConfiguration {
	m := s.Metadata(s.Name)
	if s.Generation > 1 || !s.Memory.IsEmpty() {
		m.WithAnnotations(map[string]string{names.LabelGeneration: strconv.Itoa(s.Generation)})
	}
	return m
}

// Credential is what the provider logs in with. It is made first, and its identity is the Database's identity: it outlives the
// Database together with the volumes.
func Credential(d *compose.Draft, s *facts.Cluster, remember string) {
	spec, m := s.AcceptedSpec(), s.Metadata(s.Called(names.SuffixAccess))
	if spec != "" {
		m.WithAnnotations(map[string]string{names.AnnotationAccepted: spec})
	}
	m.WithAnnotations(s.NoteSettings(nil))
	d.Require(names.AccessCredential, credential(s, m, credentialsv1alpha1.CredentialParameters{
		Keys: []credentialsv1alpha1.Key{{
			Name: names.KeyPassword,
			// The server is never given the password itself.
			Derive: []credentialsv1alpha1.Derivation{{Format: s.Traits.Verifier, Key: names.KeyVerifier}},
		}},
		Remember: remember,
	}))
}

// credential by its schema keeps the Secret when it is deleted. The Secrets of a Preview go with it.
func credential(s *facts.Cluster, m *applymetav1.ObjectMetaApplyConfiguration, p credentialsv1alpha1.CredentialParameters) compose.Named {
	c := objects.Managed(credentialsv1alpha1.CredentialGroupVersionKind, m.WithLabels(s.Disposable()), p)
	if s.Preview != "" {
		c.Spec.ManagementPolicies = xpv2.ManagementPolicies{
			xpv2.ManagementActionObserve, xpv2.ManagementActionCreate, xpv2.ManagementActionUpdate, xpv2.ManagementActionLateInitialize, xpv2.ManagementActionDelete,
		}
	}
	return c
}

// Consumers get a Secret each, with all that it takes to connect. The Secret of a consumer that was removed stays, and is no
// longer updated.
func Consumers(d *compose.Draft, s *facts.Cluster) {
	for _, c := range s.Spec.Consumers {
		d.Require(names.ConsumerPrefix+c.Name, credential(s, s.Metadata(s.Called(c.Name)), credentialsv1alpha1.CredentialParameters{
			Keys:       []credentialsv1alpha1.Key{{Name: names.KeyPassword}},
			Rotation:   Rotation(s, c),
			Connection: connection(s, c),
		}))
	}
	for resource := range s.Observed {
		name, ok := strings.CutPrefix(resource, names.ConsumerPrefix)
		if ok && !slices.ContainsFunc(s.Spec.Consumers, func(c v1alpha1.Consumer) bool { return c.Name == name }) {
			d.Remove(resource)
		}
	}
}

// connection of a consumer: one name that resolves to the right member, and all members, for clients that find it themselves.
func connection(s *facts.Cluster, c v1alpha1.Consumer) *credentialsv1alpha1.Connection {
	// Slots are the leader's.
	port, readOnly := s.Traits.Ports.Client, c.Access == v1alpha1.ConsumerReadOnly && !c.Replication
	own := s.Engine.Connection(readOnly)
	connection := &credentialsv1alpha1.Connection{
		Type:        own.Type,
		Provider:    "capstan",
		Host:        credentialsv1alpha1.Host(s.Host(names.SuffixRW)),
		Port:        new(port),
		Database:    c.Database,
		Username:    facts.Login(c.Name),
		Options:     own.Options,
		JDBCOptions: own.JDBCOptions,
		CAFrom: &credentialsv1alpha1.CASource{SecretKeyRef: &credentialsv1alpha1.KeyReference{
			Name: s.ServerSecret(), Key: names.KeyOfCertificate,
		}},
	}
	for _, letter := range s.Expected() {
		connection.Hosts = append(connection.Hosts, credentialsv1alpha1.HostPort{Host: credentialsv1alpha1.Host(s.PodHost(letter)), Port: port})
	}
	if HasTwoLogins(s, c) {
		connection.AlternateUsername = alternate(c.Name)
	}
	endpoint := func(name, host string) {
		connection.Endpoints = append(connection.Endpoints, credentialsv1alpha1.Endpoint{Name: name, Host: credentialsv1alpha1.Host(host), Port: port})
	}
	if s.Pooled() && !c.Replication {
		endpoint(names.SuffixPooler, s.Host(poolerOf(s, c.Name, readOnly)))
	}
	if host := s.ExternalHost(); host != "" {
		endpoint(names.SuffixExternal, host)
	}
	if readOnly && s.Spec.Replicas > 1 {
		connection.Host = credentialsv1alpha1.Host(s.Host(names.SuffixRO))
	}
	return connection
}

// poolerOf a consumer is the suffix of the Service of its poolers. A consumer that has the poolers before the leader keeps them until one before
// the standbys accepts clients, and does not come back when that ends.
func poolerOf(s *facts.Cluster, consumer string, readOnly bool) string {
	if !readOnly || !s.PooledReaders() {
		return names.SuffixPooler
	}
	accepting := int64(0)
	if o := s.Observed[names.ReaderPooler]; o != nil {
		accepting = compose.Number(o.Map(), 0, "status", "readyReplicas")
	}
	if o := s.Observed[names.ConsumerPrefix+consumer]; o != nil && accepting == 0 {
		for _, v := range compose.List(o.Map(), "spec", "forProvider", "connection", "endpoints") {
			if e, ok := v.(map[string]any); ok && compose.Text(e, "name") == names.SuffixPooler && compose.Text(e, "host") == s.Host(names.SuffixPooler) {
				return names.SuffixPooler
			}
		}
	}
	return names.SuffixReaderPooler
}

// Replicators are the logins of consumers that may read changes, of each consumer both.
func Replicators(s *facts.Cluster) []string {
	var logins []string
	for _, c := range s.Spec.Consumers {
		if c.Replication {
			logins = append(logins, facts.Login(c.Name), alternate(c.Name))
		}
	}
	return logins
}

// Logins makes databases, logins and grants once the provider has an identity to make them with.
func Logins(d *compose.Draft, s *facts.Cluster) {
	if s.Identity == "" {
		return
	}
	p := accessv1alpha1.AccessParameters{
		Server: accessv1alpha1.Server{
			Engine:            s.Traits.AccessEngine,
			Host:              s.Host(names.SuffixRW),
			Port:              new(s.Traits.Ports.Client),
			Username:          s.Traits.Access,
			PasswordSecretRef: accessv1alpha1.SecretKeyReference{Name: s.Called(names.SuffixAccess), Key: names.KeyPassword},
			CASecretRef:       accessv1alpha1.SecretKeyReference{Name: s.ServerSecret(), Key: names.KeyOfCertificate},
		},
		Extensions: slices.Sorted(slices.Values(s.Spec.Extensions)),
		// The logins of a standby are the primary's.
		Suspended: s.Asleep() || s.Standby(),
	}
	for _, d := range s.Spec.Databases {
		p.Databases = append(p.Databases, accessv1alpha1.AccessDatabase{Name: d.Name})
	}
	if !s.Importing() { // nothing but the import may write before the cut-over
		for _, c := range s.Spec.Consumers {
			p.Logins = append(p.Logins, accessLogin(s, c))
		}
	}
	d.Require(names.Access, objects.Managed(accessv1alpha1.AccessGroupVersionKind, accessMetadata(s), p))
}

// LoggedIn reports whether a consumer can log in.
func LoggedIn(s *facts.Cluster, c v1alpha1.Consumer) bool {
	o := s.Observed[names.Access]
	if o == nil || !facts.Ready(s.Observed[names.ConsumerPrefix+c.Name]) {
		return false
	}
	return slices.Contains(compose.List(o.Map(), "status", "atProvider", "logins"), any(facts.Login(c.Name)))
}
