// SPDX-License-Identifier: Apache-2.0

package outside

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
	"net/http"
	"time"
)

// loopback is the only address that anything here listens on.
const loopback = "127.0.0.1"

// certificates are the certificates of a test server, in PEM format.
type certificates struct {
	authority, server, key []byte
}

// newCertificates creates an authority and one certificate for the loopback address and for names. The authority's key
// is not kept.
func newCertificates(names ...string) (certificates, error) {
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "capstan-test"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificates{}, fmt.Errorf("cannot generate the key of an authority: %w", err)
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	if err != nil {
		return certificates{}, fmt.Errorf("cannot sign an authority: %w", err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: loopback}, IPAddresses: []net.IP{net.ParseIP(loopback)},
		DNSNames:  names,
		NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificates{}, fmt.Errorf("cannot generate the key of a server: %w", err)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, leafKey.Public(), rootKey)
	if err != nil {
		return certificates{}, fmt.Errorf("cannot sign a certificate: %w", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(leafKey)
	if err != nil {
		return certificates{}, fmt.Errorf("cannot encode a key: %w", err)
	}
	return certificates{
		authority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER}),
		server:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER}),
		key:       pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// Client returns an HTTP client that trusts only one authority (PEM).
func Client(authority []byte) *http.Client { return &http.Client{Transport: transport(authority)} }
