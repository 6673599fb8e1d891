// SPDX-License-Identifier: Apache-2.0

// Package pki issues the certificates of an embedded cluster. They live as long as the cluster, which is torn down
// rather than renewed.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime is longer than any cluster lives; skew forgives a clock that is set back after the start.
const (
	lifetime = 365 * 24 * time.Hour
	skew     = time.Hour
)

// A Pair is a certificate and its key, both PEM. A Pair that only signs tokens has a public key as Cert.
type Pair struct {
	Cert []byte
	Key  []byte
}

// An Authority signs certificates.
type Authority struct {
	// Pair is the authority's own certificate, signed by itself.
	Pair

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// A Request says who a certificate is for.
type Request struct {
	// User becomes the common name, which Kubernetes takes for the user name of a client.
	User string
	// Groups become organisations, which Kubernetes takes for the groups of a client.
	Groups []string
	// Names and Addresses are what a server may be called. Without any, the certificate is a client's.
	Names     []string
	Addresses []string
	// Client makes the certificate a client's although it has names. Crossplane's has one, by which functions know it.
	Client bool
}

// NewAuthority returns a self-signed authority.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot generate the key of authority %q: %w", name, err)
	}
	tmpl, err := template(name, nil)
	if err != nil {
		return nil, err
	}
	tmpl.IsCA = true
	tmpl.BasicConstraintsValid = true
	tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign authority %q: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot parse authority %q: %w", name, err)
	}
	pair, err := encode(der, key)
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: pair, cert: cert, key: key}, nil
}

// Issue returns a certificate for a server when the request has names or addresses, else for a client.
func (a *Authority) Issue(req Request) (Pair, error) {
	tmpl, err := template(req.User, req.Groups)
	if err != nil {
		return Pair{}, err
	}
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(req.Names)+len(req.Addresses) > 0 && !req.Client {
		tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	tmpl.DNSNames = req.Names
	for _, s := range req.Addresses {
		addr := net.ParseIP(s)
		if addr == nil {
			return Pair{}, fmt.Errorf("cannot issue a certificate for %q: %q is not an IP address", req.User, s)
		}
		tmpl.IPAddresses = append(tmpl.IPAddresses, addr)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot generate a key for %q: %w", req.User, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot sign the certificate of %q: %w", req.User, err)
	}
	return encode(der, key)
}

// NewTokenKeys returns the keys with which service account tokens are signed (Key) and verified (Cert).
func NewTokenKeys() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot generate the token key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, fmt.Errorf("cannot encode the public token key: %w", err)
	}
	pair, err := encode(nil, key)
	if err != nil {
		return Pair{}, err
	}
	pair.Cert = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	return pair, nil
}

func template(user string, groups []string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("cannot draw a serial number for %q: %w", user, err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    now.Add(-skew),
		NotAfter:     now.Add(lifetime),
	}, nil
}

func encode(der []byte, key *ecdsa.PrivateKey) (Pair, error) {
	b, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot encode a key: %w", err)
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: b}),
	}, nil
}
