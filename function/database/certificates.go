// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Kinds of cert-manager.
var (
	CertificateGVK = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}
	IssuerGVK      = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: kindIssuer}
)

const (
	kindIssuer = "Issuer"
)

// Lives of certificates. That of an authority is long, because clients have a copy of it.
const (
	lifeOfAuthority  = "43800h"
	renewAuthority   = "8760h"
	lifeOfLeaf       = "2160h"
	renewLeaf        = "720h"
	keyOfCertificate = "ca.crt"
)

// certificateSpec has the fields of cert-manager's Certificate that are asked for.
type certificateSpec struct {
	CommonName     string          `json:"commonName,omitempty"`
	DNSNames       []string        `json:"dnsNames,omitempty"`
	IPAddresses    []string        `json:"ipAddresses,omitempty"`
	Duration       string          `json:"duration"`
	RenewBefore    string          `json:"renewBefore"`
	IsCA           bool            `json:"isCA,omitempty"`
	IssuerRef      issuerRef       `json:"issuerRef"`
	PrivateKey     privateKey      `json:"privateKey"`
	SecretName     string          `json:"secretName"`
	SecretTemplate *secretTemplate `json:"secretTemplate,omitempty"`
	Usages         []string        `json:"usages"`
}

type issuerRef struct {
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

// issuerSpec has the two ways to sign that are asked for.
type issuerSpec struct {
	SelfSigned *struct{}     `json:"selfSigned,omitempty"`
	CA         *issuerSecret `json:"ca,omitempty"`
}

type issuerSecret struct {
	SecretName string `json:"secretName"`
}

// certificates of the members. They trust each other by an authority of this Database, whoever signs what clients see.
func certificates(d *compose.Draft, s *cluster) {
	if s.Kinds[CertificateGVK] != compose.Available {
		return
	}
	d.Require(nameCAIssuer, s.issuer(s.called(suffixSigner), issuerSpec{SelfSigned: &struct{}{}}))
	d.Require(nameCA, s.certificate(s.called(suffixCA), certificateSpec{
		CommonName:  s.called(suffixCA),
		Duration:    lifeOfAuthority,
		RenewBefore: renewAuthority,
		IsCA:        true,
		IssuerRef:   s.issuedBy(suffixSigner),
		// The key stays, so that what was signed before the renewal is trusted after it.
		PrivateKey: privateKey{"ECDSA", 256, "Never"},
		SecretName: s.called(suffixCA),
		Usages:     []string{"cert sign", "crl sign", "digital signature"},
	}))
	d.Require(nameIssuer, s.issuer(s.called(suffixCA), issuerSpec{CA: &issuerSecret{s.called(suffixCA)}}))
	d.Require(nameMembersCertificate, s.certificate(s.called(suffixOfMembers), s.leaf(suffixOfMembers, s.traits.CommonNames.Members,
		s.issuedBy(suffixCA),
		// With ECDSA a key enciphers nothing.
		[]string{"digital signature", "server auth", "client auth"})))
	if s.platformSigned() {
		ref := s.issuerRef()
		d.Require(nameServerCertificate, s.certificate(s.called(suffixServer), s.leaf(suffixServer, "",
			issuedByPlatform(ref), []string{"digital signature", "server auth"})))
		return
	}
	// It stays as long as a member shows it.
	for _, o := range s.sets {
		if o.serverSecret == s.called(suffixServer) {
			return
		}
	}
	d.Remove(nameServerCertificate)
}

// leaf certificate, for every name that the members are reached by.
func (s *cluster) leaf(suffix, commonName string, by issuerRef, usages []string) certificateSpec {
	pods := s.host(suffixPods)
	rw, ro := s.called(suffixRW), s.called(suffixRO)
	names := []string{
		"*." + pods, "*." + pods + ".cluster.local",
		rw, rw + "." + s.namespace, s.host(suffixRW), s.host(suffixRW) + ".cluster.local",
		ro, ro + "." + s.namespace, s.host(suffixRO), s.host(suffixRO) + ".cluster.local",
		"localhost",
	}
	c := certificateSpec{
		CommonName:  commonName,
		DNSNames:    names,
		Duration:    lifeOfLeaf,
		RenewBefore: renewLeaf,
		IssuerRef:   by,
		PrivateKey:  privateKey{"ECDSA", 256, "Always"},
		SecretName:  s.called(suffix),
		// Not the label of the Database: what can be made again is not guarded.
		SecretTemplate: &secretTemplate{Labels: map[string]string{labelPartOf: "capstan"}},
		Usages:         usages,
	}
	if s.called(suffix) == s.serverSecret() && !s.pooled() {
		c = s.withExternalNames(c)
	}
	return c
}

// issuedBy an Issuer of the Database.
func (s *names) issuedBy(suffix string) issuerRef {
	return issuerRef{Group: IssuerGVK.Group, Kind: kindIssuer, Name: s.called(suffix)}
}

// issuedByPlatform is a reference to an issuer that the platform has.
func issuedByPlatform(ref *v1alpha1.IssuerReference) issuerRef {
	return issuerRef{Group: IssuerGVK.Group, Kind: ref.Kind, Name: ref.Name}
}

func (s *names) certificate(name string, spec certificateSpec) *compose.Manifest[certificateSpec] {
	return compose.NewManifest(CertificateGVK.GroupVersion().String(), CertificateGVK.Kind, s.metadata(name), spec)
}

func (s *names) issuer(name string, spec issuerSpec) *compose.Manifest[issuerSpec] {
	return compose.NewManifest(IssuerGVK.GroupVersion().String(), IssuerGVK.Kind, s.metadata(name), spec)
}

// issuerRef is who signs what clients see, if it is not the Database's own authority.
func (s *cluster) issuerRef() *v1alpha1.IssuerReference {
	if t := s.spec.TLS; t != nil && t.IssuerRef != nil {
		return t.IssuerRef
	}
	return s.Settings.Database.IssuerRef
}

func (s *cluster) platformSigned() bool { return s.issuerRef() != nil }

// serverSecret holds the certificate that clients see, and what it is checked with.
func (s *cluster) serverSecret() string {
	if s.platformSigned() {
		return s.called(suffixServer)
	}
	return s.called(suffixOfMembers)
}

// A wanted certificate is one that members cannot start without.
type wanted struct{ resource, name string }

func (s *cluster) wantedCertificates() []wanted {
	ws := []wanted{{nameMembersCertificate, s.called(suffixOfMembers)}}
	if s.platformSigned() {
		ws = append(ws, wanted{nameServerCertificate, s.called(suffixServer)})
	}
	return ws
}

// certificateTrouble tells why a certificate is not there, if cert-manager says so.
func certificateTrouble(m map[string]any) (xpv2.ConditionReason, string) {
	issuing, told := compose.Condition(m, "Issuing"), compose.Condition(m, "Ready")
	if compose.Text(issuing, "status") == string(corev1.ConditionFalse) && compose.Text(issuing, "reason") == "Failed" {
		return v1alpha1.ReasonCertificateFailed, fmt.Sprintf(", which cert-manager cannot make: %s: see kubectl describe certificaterequests",
			compose.Text(issuing, "message"))
	}
	if message := compose.Text(told, "message"); message != "" {
		return v1alpha1.ReasonMakingReady, ": " + message
	}
	return v1alpha1.ReasonMakingReady, ""
}
