// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
)

// Config for one connection among members and poolers: with the copies in a folder it shows who this is and trusts the authority
// of members. They are read again for each, for certificates change.
func Config(dir string) (*tls.Config, error) {
	return Identity(filepath.Join(dir, "members.crt"), filepath.Join(dir, "members.key"), filepath.Join(dir, "members-ca.crt"))
}

// ConfigForServer is the same for a connection to the port of clients, where servers show another certificate if the platform has
// an issuer of its own.
func ConfigForServer(dir string, another bool) (*tls.Config, error) {
	c, err := Config(dir)
	if err != nil || !another {
		return c, err
	}
	c.RootCAs, err = Authorities(filepath.Join(dir, "server-ca.crt"))
	return c, err
}

// Identity for one connection: a certificate with its key, and the authority to trust, from these files.
func Identity(cert, key, authority string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificate: %w", err)
	}
	roots, err := Authorities(authority)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}, err
}

// Authorities are the certificates in a file.
func Authorities(file string) (*x509.CertPool, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot use the authority %s: %w", filepath.Base(file), err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("cannot use the authority: %s has no certificate", filepath.Base(file))
	}
	return roots, nil
}

// Listen at an address for programs that have a certificate of a configuration's authority, and show them the configuration's own
// certificate. Each connection reads the configuration again, so that it uses a renewed certificate.
func Listen(address string, config func() (*tls.Config, error)) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen to members: %w", err)
	}
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c, err := config()
		if err != nil {
			return nil, err
		}
		c = c.Clone()
		c.MinVersion, c.ClientAuth, c.ClientCAs = tls.VersionTLS13, tls.RequireAndVerifyClientCert, c.RootCAs
		return c, nil
	}}), nil
}

// CallerOf a request is the common name of its certificate, and empty when none was verified.
func CallerOf(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return ""
	}
	return r.TLS.VerifiedChains[0][0].Subject.CommonName
}
