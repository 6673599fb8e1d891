// SPDX-License-Identifier: Apache-2.0

package database

import (
	"slices"
	"strconv"
	"strings"

	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	accessv1alpha1 "github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// credentialSpec without what the schema fills in: its default keeps the Secret when the Credential goes.
type credentialSpec struct {
	ForProvider credentialsv1alpha1.CredentialParameters `json:"forProvider"`
}

// accessMetadata names the generation, so that logins are looked at as soon as clients are switched to another one.
func (s *cluster) accessMetadata() *applymetav1.ObjectMetaApplyConfiguration {
	m := s.metadata(s.name)
	if s.generation > 1 || !s.memory.empty() {
		m.WithAnnotations(map[string]string{labelGeneration: strconv.Itoa(s.generation)})
	}
	return m
}

// accessSpec without what the schema fills in.
type accessSpec struct {
	ForProvider accessv1alpha1.AccessParameters `json:"forProvider"`
}

// accessCredential is what the provider logs in with. It is made first, and its identity is that of the Database: it outlives the
// Database together with the volumes.
func accessCredential(d *compose.Draft, s *cluster, remember string) {
	spec, m := s.acceptedSpec(), s.metadata(s.called(suffixAccess))
	if spec != "" {
		m.WithAnnotations(map[string]string{annotationAccepted: spec})
	}
	d.Require(nameAccessCredential, credential(m, credentialsv1alpha1.CredentialParameters{
		Keys: []credentialsv1alpha1.Key{{
			Name: keyPassword,
			// The server is never given the password itself.
			Derive: []credentialsv1alpha1.Derivation{{Format: s.traits.Verifier, Key: keyVerifier}},
		}},
		Remember: remember,
	}))
}

func credential(m *applymetav1.ObjectMetaApplyConfiguration, p credentialsv1alpha1.CredentialParameters) compose.Named {
	return compose.NewManifest(credentialsv1alpha1.CredentialGroupVersionKind.GroupVersion().String(), credentialsv1alpha1.CredentialGroupVersionKind.Kind,
		m, credentialSpec{ForProvider: p})
}

// consumers get a Secret each, with all that it takes to connect. Nobody who is not a consumer any more has one that is kept up
// to date; the Secret itself stays.
func consumers(d *compose.Draft, s *cluster) {
	for _, c := range s.spec.Consumers {
		d.Require(nameConsumerPrefix+c.Name, credential(s.metadata(s.called(c.Name)), credentialsv1alpha1.CredentialParameters{
			Keys:       []credentialsv1alpha1.Key{{Name: keyPassword}},
			Rotation:   s.rotation(c),
			Connection: s.connection(c),
		}))
	}
	for resource := range s.Observed {
		name, ok := strings.CutPrefix(resource, nameConsumerPrefix)
		if ok && !slices.ContainsFunc(s.spec.Consumers, func(c v1alpha1.Consumer) bool { return c.Name == name }) {
			d.Remove(resource)
		}
	}
}

// connection of a consumer: one name that leads to the right member, and all members, for clients that look for it themselves.
func (s *cluster) connection(c v1alpha1.Consumer) *credentialsv1alpha1.Connection {
	hosts := make([]credentialsv1alpha1.HostPort, 0, len(letters))
	for _, letter := range s.expected() {
		hosts = append(hosts, credentialsv1alpha1.HostPort{Host: credentialsv1alpha1.Host(s.podHost(letter)), Port: s.traits.Ports.Client})
	}
	own := s.engine.Connection(c.Access == v1alpha1.ConsumerReadOnly)
	connection := &credentialsv1alpha1.Connection{
		Type:        own.Type,
		Provider:    "capstan",
		Host:        credentialsv1alpha1.Host(s.host(suffixRW)),
		Port:        new(s.traits.Ports.Client),
		Hosts:       hosts,
		Database:    c.Database,
		Username:    login(c.Name),
		Options:     own.Options,
		JDBCOptions: own.JDBCOptions,
		CAFrom: &credentialsv1alpha1.CASource{SecretKeyRef: &credentialsv1alpha1.KeyReference{
			Name: s.serverSecret(), Key: keyOfCertificate,
		}},
	}
	if s.hasTwoLogins(c) {
		connection.AlternateUsername = alternate(c.Name)
	}
	if s.pooled() {
		connection.Endpoints = append(connection.Endpoints, credentialsv1alpha1.Endpoint{
			Name: suffixPooler, Host: credentialsv1alpha1.Host(s.host(suffixPooler)), Port: s.traits.Ports.Client,
		})
	}
	if host := s.externalHost(); host != "" {
		connection.Endpoints = append(connection.Endpoints, credentialsv1alpha1.Endpoint{
			Name: suffixExternal, Host: credentialsv1alpha1.Host(host), Port: s.traits.Ports.Client,
		})
	}
	if c.Access == v1alpha1.ConsumerReadOnly && s.spec.Replicas > 1 {
		connection.Host = credentialsv1alpha1.Host(s.host(suffixRO))
	}
	return connection
}

// access makes databases, logins and grants once there is somebody to make them.
func access(d *compose.Draft, s *cluster) {
	if s.identity == "" {
		return
	}
	p := accessv1alpha1.AccessParameters{
		Server: accessv1alpha1.Server{
			Host:              s.host(suffixRW),
			Port:              new(s.traits.Ports.Client),
			Username:          s.traits.Access,
			PasswordSecretRef: accessv1alpha1.SecretKeyReference{Name: s.called(suffixAccess), Key: keyPassword},
			CASecretRef:       accessv1alpha1.SecretKeyReference{Name: s.serverSecret(), Key: keyOfCertificate},
		},
		Extensions: slices.Sorted(slices.Values(s.spec.Extensions)),
		Suspended:  s.asleep(),
	}
	for _, d := range s.spec.Databases {
		p.Databases = append(p.Databases, accessv1alpha1.AccessDatabase{Name: d.Name})
	}
	for _, c := range s.spec.Consumers {
		p.Logins = append(p.Logins, s.accessLogin(c))
	}
	d.Require(nameAccess, compose.NewManifest(accessv1alpha1.AccessGroupVersionKind.GroupVersion().String(), accessv1alpha1.AccessGroupVersionKind.Kind,
		s.accessMetadata(), accessSpec{ForProvider: p}))
}

// loggedIn reports whether a consumer can log in.
func (s *cluster) loggedIn(c v1alpha1.Consumer) bool {
	o := s.Observed[nameAccess]
	if o == nil || !ready(s.Observed[nameConsumerPrefix+c.Name]) {
		return false
	}
	return slices.Contains(compose.List(o.Map(), "status", "atProvider", "logins"), any(login(c.Name)))
}
