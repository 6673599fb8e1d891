// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
)

// Listen at an address to who has a certificate of the authority of a configuration, which is also what is shown. It is asked for anew for
// each connection, so that a renewed certificate is.
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
