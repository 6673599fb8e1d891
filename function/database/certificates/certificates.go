// SPDX-License-Identifier: Apache-2.0

// Package certificates composes the certificates that members and poolers show each other and clients.
package certificates

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/objects"
)

// Lifetimes of certificates. An authority lives long, because clients have a copy of it.
const (
	lifeOfAuthority = "43800h"
	renewAuthority  = "8760h"
	lifeOfLeaf      = "2160h"
	renewLeaf       = "720h"
)

// Usages of keys. With ECDSA a key enciphers nothing.
var (
	ServerAndClient = []string{"digital signature", "server auth", "client auth"}
	ServerOnly      = []string{"digital signature", "server auth"}
)

// Spec has the fields of cert-manager's Certificate that Capstan sets.
type Spec struct {
	CommonName     string          `json:"commonName,omitempty"`
	DNSNames       []string        `json:"dnsNames,omitempty"`
	IPAddresses    []string        `json:"ipAddresses,omitempty"`
	Duration       string          `json:"duration"`
	RenewBefore    string          `json:"renewBefore"`
	IsCA           bool            `json:"isCA,omitempty"`
	IssuerRef      IssuerRef       `json:"issuerRef"`
	PrivateKey     privateKey      `json:"privateKey"`
	SecretName     string          `json:"secretName"`
	SecretTemplate *secretTemplate `json:"secretTemplate,omitempty"`
	Usages         []string        `json:"usages"`
}

// IssuerRef names the issuer of a certificate.
type IssuerRef struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

type privateKey struct {
	Algorithm      string `json:"algorithm"`
	Size           int    `json:"size"`
	RotationPolicy string `json:"rotationPolicy"`
}

type secretTemplate struct {
	Labels map[string]string `json:"labels"`
}

// issuerSpec has the two ways to sign that Capstan uses.
type issuerSpec struct {
	SelfSigned *struct{}     `json:"selfSigned,omitempty"`
	CA         *issuerSecret `json:"ca,omitempty"`
}

type issuerSecret struct {
	SecretName string `json:"secretName"`
}

// Compose the certificates of members. Members trust each other by an authority of this Database, also when the platform's issuer
// signs the certificate that clients see.
func Compose(d *compose.Draft, s *facts.Cluster) {
	if s.Kinds[names.CertificateGVK] != compose.Available {
		return
	}
	d.Require(names.CAIssuer, issuer(&s.Names, s.Called(names.SuffixSigner), issuerSpec{SelfSigned: &struct{}{}}))
	d.Require(names.CA, New(&s.Names, s.Called(names.SuffixCA), Spec{
		CommonName:  s.Called(names.SuffixCA),
		Duration:    lifeOfAuthority,
		RenewBefore: renewAuthority,
		IsCA:        true,
		IssuerRef:   IssuedBy(&s.Names, names.SuffixSigner),
		// The key stays, so that what was signed before the renewal is trusted after it.
		PrivateKey: privateKey{"ECDSA", 256, "Never"},
		SecretName: s.Called(names.SuffixCA),
		Usages:     []string{"cert sign", "crl sign", "digital signature"},
	}))
	d.Require(names.Issuer, issuer(&s.Names, s.Called(names.SuffixCA), issuerSpec{CA: &issuerSecret{s.Called(names.SuffixCA)}}))
	d.Require(names.MembersCertificate, memberLeaf(s, names.SuffixOfMembers, s.Traits.CommonNames.Members, IssuedBy(&s.Names, names.SuffixCA), ServerAndClient))
	if s.PlatformSigned() {
		d.Require(names.ServerCertificate, memberLeaf(s, names.SuffixServer, "", IssuedByPlatform(s.IssuerRef()), ServerOnly))
		return
	}
	// It stays as long as a member shows it.
	for _, o := range s.Sets {
		if o.ServerSecret == s.Called(names.SuffixServer) {
			return
		}
	}
	d.Remove(names.ServerCertificate)
}

// memberLeaf is a certificate for every name that the members are reached by.
func memberLeaf(s *facts.Cluster, suffix, commonName string, by IssuerRef, usages []string) compose.Named {
	c, pods := Leaf(&s.Names, suffix, commonName, by, usages), s.Host(names.SuffixPods)
	c.DNSNames = slices.Concat([]string{"*." + pods, "*." + pods + ".cluster.local"},
		ServiceNames(&s.Names, names.SuffixRW), ServiceNames(&s.Names, names.SuffixRO), []string{"localhost"})
	if s.Called(suffix) == s.ServerSecret() && !s.Pooled() {
		c = WithExternalNames(s, c)
	}
	return New(&s.Names, s.Called(suffix), c)
}

// ServiceNames are the names of a Service of the Database.
func ServiceNames(s *names.Names, suffix string) []string {
	name, host := s.Called(suffix), s.Host(suffix)
	return []string{name, name + "." + s.Namespace, host, host + ".cluster.local"}
}

// BackupLeaf is a client certificate without a role in the server.
func BackupLeaf(s *names.Names, suffix, commonName string) *compose.Manifest[Spec] {
	return New(s, s.Called(suffix), Leaf(s, suffix, commonName, IssuedBy(s, names.SuffixCA), []string{"digital signature", "client auth"}))
}

// Leaf certificate without names of hosts.
func Leaf(s *names.Names, suffix, commonName string, by IssuerRef, usages []string) Spec {
	return Spec{
		CommonName:  commonName,
		Duration:    lifeOfLeaf,
		RenewBefore: renewLeaf,
		IssuerRef:   by,
		PrivateKey:  privateKey{"ECDSA", 256, "Always"},
		SecretName:  s.Called(suffix),
		// Not the label of the Database: what can be made again is not guarded.
		SecretTemplate: &secretTemplate{Labels: map[string]string{names.LabelPartOf: "capstan"}},
		Usages:         usages,
	}
}

// IssuedBy an Issuer of the Database.
func IssuedBy(s *names.Names, suffix string) IssuerRef {
	return IssuerRef{Group: names.IssuerGVK.Group, Kind: names.KindIssuer, Name: s.Called(suffix)}
}

// IssuedByPlatform is a reference to an issuer that the platform has.
func IssuedByPlatform(ref *v1alpha1.IssuerReference) IssuerRef {
	return IssuerRef{Group: names.IssuerGVK.Group, Kind: ref.Kind, Name: ref.Name}
}

// New certificate of the Database.
func New(s *names.Names, name string, spec Spec) *compose.Manifest[Spec] {
	return objects.Manifest(names.CertificateGVK, s.Metadata(name), spec)
}

func issuer(s *names.Names, name string, spec issuerSpec) *compose.Manifest[issuerSpec] {
	return objects.Manifest(names.IssuerGVK, s.Metadata(name), spec)
}

// A Reference certificate is one that members cannot start without.
type Reference struct{ Resource, Name string }

// Awaited certificates are those that members cannot start without.
func Awaited(s *facts.Cluster) []Reference {
	ws := []Reference{{names.MembersCertificate, s.Called(names.SuffixOfMembers)}}
	if s.PlatformSigned() {
		ws = append(ws, Reference{names.ServerCertificate, s.Called(names.SuffixServer)})
	}
	return ws
}

// Trouble is why a certificate is not ready, as far as cert-manager reports it: a reason, and text that follows the certificate's name.
func Trouble(m map[string]any) (xpv2.ConditionReason, string) {
	issuing, ready := compose.Condition(m, "Issuing"), compose.Condition(m, "Ready")
	if compose.Text(issuing, "status") == string(corev1.ConditionFalse) && compose.Text(issuing, "reason") == "Failed" {
		return v1alpha1.ReasonCertificateFailed, fmt.Sprintf(": cert-manager cannot issue it: %s: run kubectl describe certificaterequests, and fix the cause",
			compose.Text(issuing, "message"))
	}
	if message := compose.Text(ready, "message"); message != "" {
		return v1alpha1.ReasonMakingReady, ": " + message
	}
	return v1alpha1.ReasonMakingReady, ""
}

// WithExternalNames is a certificate that is for what clients outside connect to as well.
func WithExternalNames(s *facts.Cluster, c Spec) Spec {
	if !s.Exposed() {
		return c
	}
	if name := s.Spec.Expose.Hostname; name != "" {
		c.DNSNames = append(c.DNSNames, name)
	}
	address := s.Assigned()
	if address == "" || address == s.Spec.Expose.Hostname {
		return c
	}
	if _, err := netip.ParseAddr(address); err == nil {
		c.IPAddresses = append(c.IPAddresses, address)
	} else {
		c.DNSNames = append(c.DNSNames, address)
	}
	return c
}
