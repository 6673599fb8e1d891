// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	encoding "encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

const (
	serverName = "function-capstan.crossplane-system"
	clientName = "crossplane.crossplane-system"
)

// An authority issues certificates for one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var der []byte
	a.key, der = sign(t, template, template, nil)
	a.pem = encoding.EncodeToMemory(&encoding.Block{Type: "CERTIFICATE", Bytes: der})
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func sign(t *testing.T, template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

// issue a certificate with a name, valid for the given time from now.
func (a *authority) issue(t *testing.T, name string, serial int64, valid time.Duration) (cert, key []byte) {
	t.Helper()
	k, der := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, a.key)
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return encoding.EncodeToMemory(&encoding.Block{Type: "CERTIFICATE", Bytes: der}),
		encoding.EncodeToMemory(&encoding.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// mount files as the volume of a Secret is: behind a symbolic link that is swapped when they change.
func mount(t *testing.T, dir, version string, cert, key, ca []byte) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{fileCertificate: cert, fileKey: key, fileClientCA: ca} {
		if err := os.WriteFile(filepath.Join(dir, version, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(version, filepath.Join(dir, "..tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// A client of the server, as Crossplane is.
type client struct {
	roots   *authority
	by      *authority // Issuer of the client's certificate. None without.
	name    string     // In the client's certificate. Crossplane's when empty.
	valid   time.Duration
	version uint16 // Greatest version of TLS.
}

// call the server by a new connection and return the serial number of its certificate.
func (c client) call(t *testing.T, r *running) (int64, error) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(c.roots.cert)
	var serial int64
	config := &tls.Config{
		RootCAs: pool, ServerName: serverName, MaxVersion: c.version,
		VerifyConnection: func(s tls.ConnectionState) error {
			serial = s.PeerCertificates[0].SerialNumber.Int64()
			return nil
		},
	}
	if c.by != nil {
		cert, key := c.by.issue(t, cmp.Or(c.name, clientName), 100, c.valid)
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}

		// Whatever authorities the server names, this certificate is shown.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := fnv1.NewFunctionRunnerServiceClient(dial(t, r.Addr(), credentials.NewTLS(config))).
		RunFunction(ctx, request("tag", "Algorithm"))
	return serial, err
}

func secure(dir string) func(*Options) {
	return func(o *Options) { o.Insecure, o.CertsDir, o.Clients = false, dir, []string{clientName} }
}

func TestClients(t *testing.T) {
	ours, foreign := newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t, serverName, 1, time.Hour)
	dir := t.TempDir()
	mount(t, dir, "..1", cert, key, ours.pem)
	r := start(t, echo, secure(dir))
	cases := map[string]struct {
		reason string
		c      client
		want   codes.Code
	}{
		"Ours": {
			reason: "Crossplane's certificate should be let in.",
			c:      client{roots: ours, by: ours, valid: time.Hour},
			want:   codes.OK,
		},
		"Provider": {
			reason: "Crossplane's authority gives each provider a certificate with the name of its revision. It should be refused.",
			c:      client{roots: ours, by: ours, name: "provider-sql-1f9e2c", valid: time.Hour},
			want:   codes.Unavailable,
		},
		"LongerName": {
			reason: "A name that only begins like Crossplane's should be refused.",
			c:      client{roots: ours, by: ours, name: clientName + ".example.org", valid: time.Hour},
			want:   codes.Unavailable,
		},
		"None": {
			reason: "Nobody should get in without a certificate.",
			c:      client{roots: ours},
			want:   codes.Unavailable,
		},
		"Foreign": {
			reason: "A certificate of another CA should be refused.",
			c:      client{roots: ours, by: foreign, valid: time.Hour},
			want:   codes.Unavailable,
		},
		"Expired": {
			reason: "An expired certificate should be refused.",
			c:      client{roots: ours, by: ours, valid: -time.Minute},
			want:   codes.Unavailable,
		},
		"TLS12": {
			reason: "TLS 1.2 should be refused.",
			c:      client{roots: ours, by: ours, valid: time.Hour, version: tls.VersionTLS12},
			want:   codes.Unavailable,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// The client of TLS 1.3 learns of a refusal after its handshake, so that of the error only the code is certain.
			if _, err := tc.c.call(t, r); status.Code(err) != tc.want {
				t.Errorf("%s\nwant %s, got %v", tc.reason, tc.want, err)
			}
		})
	}
	if want := `"names":["provider-sql-1f9e2c"]`; !strings.Contains(r.log.String(), want) {
		t.Errorf("A refused client should be logged with its names, %s:\n%s", want, r.log)
	}
}

func TestRotation(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	cert, key := before.issue(t, serverName, 1, time.Hour)
	dir := t.TempDir()
	mount(t, dir, "..1", cert, key, before.pem)
	r := start(t, echo, secure(dir))
	old, renewed := client{roots: before, by: before, valid: time.Hour}, client{roots: after, by: after, valid: time.Hour}
	if serial, err := old.call(t, r); err != nil || serial != 1 {
		t.Fatalf("want certificate 1, got %d, %v", serial, err)
	}

	// A volume with a key that is not the certificate's.
	broken, _ := after.issue(t, serverName, 2, time.Hour)
	mount(t, dir, "..2", broken, key, after.pem)
	if serial, err := old.call(t, r); err != nil || serial != 1 {
		t.Errorf("With broken files the certificate from before should serve, got %d, %v", serial, err)
	}
	if !strings.Contains(r.log.String(), "cannot pair tls.crt with tls.key") {
		t.Errorf("Broken files should be logged:\n%s", r.log)
	}
	cert, key = after.issue(t, serverName, 3, time.Hour)
	mount(t, dir, "..3", cert, key, after.pem)
	if serial, err := renewed.call(t, r); err != nil || serial != 3 {
		t.Errorf("The first connection after a rotation should see the new certificate, got %d, %v", serial, err)
	}
	if _, err := (client{roots: after, by: before, valid: time.Hour}).call(t, r); err == nil {
		t.Error("After a rotation of the CA a client of the old one should be refused")
	}
}

func TestBadCertificates(t *testing.T) {
	ours := newAuthority(t)
	cert, key := ours.issue(t, serverName, 1, time.Hour)
	_, other := ours.issue(t, serverName, 2, time.Hour)
	cases := map[string]struct {
		reason        string
		cert, key, ca []byte
		want          string
	}{
		"Mismatch": {
			reason: "A key of another certificate should be told.",
			cert:   cert, key: other, ca: ours.pem,
			want: "cannot pair tls.crt with tls.key",
		},
		"NoCA": {
			reason: "A CA file without certificate should be told.",
			cert:   cert, key: key, ca: []byte("x"),
			want: "cannot find a certificate in ca.crt",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mount(t, dir, "..1", tc.cert, tc.key, tc.ca)
			_, err := New(functionFunc(echo), Options{Address: loopback, CertsDir: dir, Clients: []string{clientName}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nNew(...): want error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
	if _, err := New(functionFunc(echo), Options{Address: loopback, CertsDir: t.TempDir(), Clients: []string{clientName}}); err == nil {
		t.Error("An empty folder should be told.")
	}
	if _, err := New(functionFunc(echo), Options{Address: loopback, CertsDir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "--tls-clients") {
		t.Errorf("A server that nobody may call should be refused, got %v", err)
	}
}
