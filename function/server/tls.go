// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// transport security of the calls.
func transport(o Options) (credentials.TransportCredentials, error) {
	if o.Insecure {
		return insecure.NewCredentials(), nil
	}
	if o.CertsDir == "" {
		return nil, errors.New("cannot serve without certificates: name their folder (--tls-certs-dir), or serve to " +
			"every client in a local run (--insecure)")
	}
	if len(o.Clients) == 0 {
		return nil, errors.New("cannot serve without clients: name at least one (--tls-clients)")
	}
	c := &certificates{dir: o.CertsDir, clients: o.Clients, log: o.Log}
	if err := c.reload(); err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: c.configForClient}), nil
}

// Names that Crossplane gives the files in its certificate folders.
const (
	fileCertificate = "tls.crt"
	fileKey         = "tls.key"
	fileClientCA    = "ca.crt"
)

// certificates of a folder. They are read at every handshake, because there are few, so that a rotation counts from the next one
// on. Contents are compared, not times: a Secret's volume changes by the swap of a symbolic link.
type certificates struct {
	dir     string
	clients []string
	log     *slog.Logger

	mu     sync.Mutex
	files  pem
	config *tls.Config
}

// configForClient is the TLS configuration of one handshake. While the files cannot be used, for instance halfway through a
// rotation, it is the last one that could.
func (c *certificates) configForClient(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.reload(); err != nil {
		c.log.Error("serving on with the certificates from before", "error", err.Error())
	}
	return c.config, nil
}

// reload the files if they changed.
func (c *certificates) reload() error {
	files, err := read(c.dir)
	if err != nil {
		return err
	}
	if c.config != nil && files.equal(c.files) {
		return nil
	}
	config, err := files.config()
	if err != nil {
		return fmt.Errorf("cannot use certificates in %q: %w", c.dir, err)
	}
	config.VerifyConnection = c.verify
	c.files, c.config = files, config
	c.log.Info("loaded certificates", "folder", c.dir, "expires", config.Certificates[0].Leaf.NotAfter)
	return nil
}

// verify that a client with a certificate of the authority is one that may call. The authority is Crossplane's, which gives a
// certificate to every provider, too.
func (c *certificates) verify(s tls.ConnectionState) error {
	names := s.PeerCertificates[0].DNSNames
	if slices.ContainsFunc(c.clients, func(name string) bool { return slices.Contains(names, name) }) {
		return nil
	}
	c.log.Warn("refused a client: its certificate has none of the names that may call (--tls-clients)", "names", names, "clients", c.clients)
	return fmt.Errorf("the certificate of the client has the names %q, and only %q may call", names, c.clients)
}

// pem holds the contents of the files.
type pem struct {
	certificate, key, clientCA []byte
}

func read(dir string) (pem, error) {
	var p pem
	for name, b := range map[string]*[]byte{
		fileCertificate: &p.certificate,
		fileKey:         &p.key,
		fileClientCA:    &p.clientCA,
	} {
		var err error
		if *b, err = os.ReadFile(filepath.Join(dir, name)); err != nil { //nolint:gosec // The folder is a flag of the operator.
			return pem{}, fmt.Errorf("cannot read certificates: %w", err)
		}
	}
	return p, nil
}

func (p pem) equal(q pem) bool {
	return bytes.Equal(p.certificate, q.certificate) &&
		bytes.Equal(p.key, q.key) &&
		bytes.Equal(p.clientCA, q.clientCA)
}

// config that admits clients of the client CA only. A session is never resumed:
// that would spare a client the check against a new client CA.
func (p pem) config() (*tls.Config, error) {
	pair, err := tls.X509KeyPair(p.certificate, p.key)
	if err != nil {
		return nil, fmt.Errorf("cannot pair %s with %s: %w", fileCertificate, fileKey, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(p.clientCA) {
		return nil, fmt.Errorf("cannot find a certificate in %s", fileClientCA)
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{pair},
		ClientCAs:              pool,
		ClientAuth:             tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true,
	}, nil
}
