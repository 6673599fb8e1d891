// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// answerTimeout limits a request to a server on the loopback address.
const answerTimeout = 30 * time.Second

// A server is an HTTPS process with its data in a directory.
type server struct {
	process

	// url without a slash at the end.
	url       string
	port      string
	authority []byte
	// certFile and keyFile are the server's certificate and key.
	certFile, keyFile string
}

// newServer creates everything except the command line. Its directory lives as long as the test. Its certificate is
// also for hosts.
func newServer(tb testing.TB, name string, hosts ...string) *server {
	tb.Helper()
	certs, err := newCertificates(hosts...)
	if err != nil {
		tb.Fatalf("cannot start %s: %v", name, err)
	}
	s := &server{process: process{name: name, dir: tb.TempDir()}, port: freePort(tb), authority: certs.authority}
	s.url = "https://" + loopback + ":" + s.port
	s.certFile, s.keyFile = filepath.Join(s.dir, "tls.crt"), filepath.Join(s.dir, "tls.key")
	for path, content := range map[string][]byte{s.certFile: certs.server, s.keyFile: certs.key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			tb.Fatalf("cannot start %s: %v", name, err)
		}
	}
	return s
}

// run starts the server, and stops it with the test.
func (s *server) run(tb testing.TB) {
	tb.Helper()
	tb.Cleanup(s.stop)
	s.start(tb)
}

// folder creates a directory of the server.
func (s *server) folder(tb testing.TB, name string) string {
	tb.Helper()
	dir := filepath.Join(s.dir, name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		tb.Fatalf("cannot start %s: %v", s.name, err)
	}
	return dir
}

// answers returns nil when a GET of a path has the wanted status; 0 accepts any. The certificate proves that the
// response does not come from another process on this port.
func (s *server) answers(path string, want int) error {
	transport := transport(s.authority)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: answerTimeout}
	resp, err := client.Get(s.url + path)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	if want != 0 && resp.StatusCode != want {
		return fmt.Errorf("cannot use %s: it answers %s", s.url+path, resp.Status)
	}
	return nil
}

func transport(authority []byte) *http.Transport {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
}
