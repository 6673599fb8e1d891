// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var now = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

// An authority of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// serial of the next certificate.
var serial int64

// sign a certificate, by itself without an authority.
func sign(t *testing.T, by *authority, until time.Time) (*authority, []byte) {
	t.Helper()
	serial++
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotBefore: now.Add(-time.Hour), NotAfter: until,
		IsCA: by == nil, BasicConstraintsValid: true,
	}
	parent, signer := c, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	c, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{c, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})},
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// mount a Secret.
func mount(t *testing.T, dir string, leaf *authority, key []byte, ca []byte) {
	t.Helper()
	err := os.MkdirAll(dir, 0o700)
	for name, raw := range map[string][]byte{"tls.crt": leaf.pem, "tls.key": key, "ca.crt": ca} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// has tells what the copy of a file is.
func has(t *testing.T, c *Copies, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(c.Link, name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// refresh and compare whether anything changed.
func refresh(t *testing.T, c *Copies, at time.Time, want bool) {
	t.Helper()
	changed, err := c.Refresh(at)
	if err != nil {
		t.Fatalf("Refresh(...): %v", err)
	}
	if changed != want {
		t.Errorf("Refresh(...): changed %v, want %v", changed, want)
	}
}

func TestRefresh(t *testing.T) {
	dir := t.TempDir()
	c := &Copies{Members: filepath.Join(dir, "members"), Server: filepath.Join(dir, "server"), Link: filepath.Join(dir, "run", "tls"), Settle: 3 * time.Minute}
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Refresh(now); err == nil {
		t.Error("Refresh(...) without a Secret: want an error")
	}
	year := now.AddDate(1, 0, 0)
	ca, _ := sign(t, nil, year)
	leaf, key := sign(t, ca, year)
	mount(t, c.Members, leaf, key, ca.pem)
	mount(t, c.Server, leaf, key, ca.pem)
	refresh(t, c, now, true)
	refresh(t, c, now, false)
	info, err := os.Stat(filepath.Join(c.Link, "members.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v (%v), want 0600: PostgreSQL refuses others", info.Mode(), err)
	}

	// Renewed by the same authority: used at once.
	next, nextKey := sign(t, ca, year)
	mount(t, c.Members, next, nextKey, ca.pem)
	refresh(t, c, now, true)
	if !bytes.Equal(has(t, c, "members.crt"), next.pem) {
		t.Error("the renewed certificate is not used")
	}
	if entries, err := os.ReadDir(filepath.Dir(c.Link)); err != nil || len(entries) != 2 {
		t.Errorf("beside the link there are %v (%v), want one folder", entries, err)
	}

	// A key that does not fit: nothing changes.
	mount(t, c.Members, leaf, nextKey, ca.pem)
	if changed, err := c.Refresh(now); changed || err == nil {
		t.Errorf("Refresh(...) with a key of another: changed %v, error %v", changed, err)
	}

	// A new authority: trusted at once beside the old one, and used when the others trust it, too.
	newCA, _ := sign(t, nil, year)
	last, lastKey := sign(t, newCA, year)
	mount(t, c.Members, last, lastKey, newCA.pem)
	refresh(t, c, now, true)
	if trusted := has(t, c, "members-ca.crt"); !bytes.Contains(trusted, ca.pem) || !bytes.Contains(trusted, newCA.pem) {
		t.Error("both authorities should be trusted")
	}
	if !bytes.Equal(has(t, c, "members.crt"), next.pem) {
		t.Error("the certificate of the new authority is used before others trust it")
	}
	refresh(t, c, now.Add(time.Minute), false)
	refresh(t, c, now.Add(3*time.Minute), true)
	if !bytes.Equal(has(t, c, "members.crt"), last.pem) {
		t.Error("the certificate of the new authority is not used")
	}

	// The old authority is forgotten when it is no longer valid.
	refresh(t, c, year.Add(-time.Second), false)
	later, laterKey := sign(t, newCA, year.AddDate(1, 0, 0))
	longCA := *newCA
	mount(t, c.Members, later, laterKey, longCA.pem)
	if _, err := c.Refresh(year.Add(time.Hour)); err == nil {
		t.Error("Refresh(...) when no authority is valid: want an error")
	}
}
