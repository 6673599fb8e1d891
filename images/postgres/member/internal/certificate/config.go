// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
)

// Config for one connection among members and poolers: with the copies in a folder it shows who this is and trusts the authority of
// members. They are read anew for each, for certificates change.
func Config(dir string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "members.crt"), filepath.Join(dir, "members.key"))
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificate of members: %w", err)
	}
	roots, err := authorities(dir, "members-ca.crt")
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

// ConfigForServer is the same for a connection to the port of clients, where servers show another certificate if the platform has an
// issuer of its own.
func ConfigForServer(dir string, another bool) (*tls.Config, error) {
	c, err := Config(dir)
	if err != nil || !another {
		return c, err
	}
	if c.RootCAs, err = authorities(dir, "server-ca.crt"); err != nil {
		return nil, err
	}
	return c, nil
}

func authorities(dir, file string) (*x509.CertPool, error) {
	raw, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, fmt.Errorf("cannot use the authority %s: %w", file, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(raw)
	return roots, nil
}
