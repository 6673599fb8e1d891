// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// host of the tests: its port is a constant, so that each test has an address of its own.
const host = "127.0.0.1"

// An authority that certificates of a test are of.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t, cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// identity of a common name, as files.
func (a *authority) identity(name string) pgbackrest.TLS {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(host)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	dir := a.t.TempDir()
	out := pgbackrest.TLS{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.crt")}
	for file, content := range map[string][]byte{
		out.Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), out.Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), out.CA: a.pem,
	} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return out
}

// serve a host that takes backups so, and return the authority of who may come.
func serve(t *testing.T, take func(context.Context, pgmember.Backup) (any, error)) *authority {
	t.Helper()
	a := newAuthority(t)
	shown := a.identity(pgmember.BackupCommonName)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	h := Host{Address: net.JoinHostPort(host, "8433"), Config: shown.Client, Objects: filepath.Join(t.TempDir(), "objects"), Volume: t.TempDir(), Take: take, Create: func(_ context.Context, s pgmember.Backup) error {
		if s.Stanza != "orders-17" {
			return errors.New("pgbackrest stanza-create: it is of other data")
		}
		return nil
	}}
	go func() { done <- h.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for range 100 {
		conn, err := net.Dial("tcp", h.Address)
		if err == nil {
			_ = conn.Close()
			return a
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the host does not listen")
	return nil
}

func (a *authority) repository(name string) pgbackrest.Repository {
	return pgbackrest.Repository{Served: &pgbackrest.Served{Server: host, TLS: a.identity(name)}}
}

func TestObjects(t *testing.T) {
	a := serve(t, nil)
	store, err := objectstore.Open(a.repository(pgmember.RepositoryCommonName))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if found, err := store.Read(t.Context(), "shop/orders/capstan/restore-points.json", &got); found || err != nil {
		t.Errorf("an object that nobody wrote: found %t, error %v", found, err)
	}
	for _, want := range []map[string]string{{"a": "1"}, {"a": "2", "b": "3"}} {
		if err := store.Write(t.Context(), "shop/orders/capstan/restore-points.json", want); err != nil {
			t.Fatal(err)
		}
		got = nil
		if found, err := store.Read(t.Context(), "shop/orders/capstan/restore-points.json", &got); !found || err != nil {
			t.Errorf("found %t, error %v", found, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
	for _, key := range []string{"../../etc/passwd", "a/../../../x", "x.json.next"} {
		if err := store.Write(t.Context(), key, 1); err == nil {
			t.Errorf("%s was written", key)
		}
	}
	if u, err := Usage(t.Context(), a.repository(pgmember.RepositoryCommonName)); err != nil || u.Size == 0 {
		t.Errorf("the usage is %+v, error %v", u, err)
	}
}

func TestCreate(t *testing.T) {
	a := serve(t, nil)
	settings := pgmember.Backup{Stanza: "orders-17", Members: []string{"a"}, Repository: host}
	if err := Create(t.Context(), a.repository(pgmember.RepositoryCommonName), settings); err != nil {
		t.Error(err)
	}
	settings.Stanza = "other-17"
	if err := Create(t.Context(), a.repository(pgmember.RepositoryCommonName), settings); err == nil || !strings.Contains(err.Error(), "it is of other data") {
		t.Errorf("why there is none: %v", err)
	}
	if err := Create(t.Context(), a.repository(pgmember.BackupCommonName), settings); err == nil || !strings.Contains(err.Error(), "not one that may do that") {
		t.Errorf("who takes backups makes a stanza: %v", err)
	}
}

// TestStrangers come with another certificate, with one of another authority, or with none.
func TestStrangers(t *testing.T) {
	a := serve(t, func(context.Context, pgmember.Backup) (any, error) { return "taken", nil })
	var result string
	settings := pgmember.Backup{Stanza: "orders-17", Members: []string{"a"}, Repository: host}
	if err := Take(t.Context(), a.identity(pgmember.RepositoryCommonName), settings, &result); err == nil || !strings.Contains(err.Error(), "not one that may do that") {
		t.Errorf("who archives has a backup taken: %q, error %v", result, err)
	}
	if err := Take(t.Context(), newAuthority(t).identity(pgmember.BackupCommonName), settings, &result); err == nil {
		t.Error("a stranger has a backup taken")
	}
	for _, name := range []string{pgmember.BackupCommonName, "capstan-members"} {
		store, err := objectstore.Open(a.repository(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Write(t.Context(), "a.json", 1); err == nil || !strings.Contains(err.Error(), "in the volume of backups: the certificate is not one that may do that") {
			t.Errorf("%s writes an object: error %v", name, err)
		}
	}
	conn, err := tls.Dial("tcp", net.JoinHostPort(host, "8433"), &tls.Config{InsecureSkipVerify: true})
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	if err == nil {
		t.Error("somebody without a certificate is let in")
	}
}

func TestTake(t *testing.T) {
	type backup struct{ Label, Stanza string }
	ended := make(chan struct{})
	a := serve(t, func(ctx context.Context, s pgmember.Backup) (any, error) {
		switch s.Stanza {
		case "fails":
			return nil, errors.New("pgbackrest backup: no space left on device")
		case "waits":
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}
		return backup{"20261120-060000F", s.Stanza}, nil
	})
	me := a.identity(pgmember.BackupCommonName)
	settings := pgmember.Backup{Stanza: "orders-17", Members: []string{"a"}, Repository: host}
	var got backup
	if err := Take(t.Context(), me, settings, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(backup{"20261120-060000F", "orders-17"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	settings.Stanza = "fails"
	if err := Take(t.Context(), me, settings, &got); err == nil || err.Error() != "pgbackrest backup: no space left on device" {
		t.Errorf("why there is no backup: %v", err)
	}
	settings.Stanza = "../x"
	if err := Take(t.Context(), me, settings, &got); err == nil || !strings.Contains(err.Error(), `"../x" cannot be a stanza`) {
		t.Errorf("why it is refused: %v", err)
	}
	// Who is gone wants none any more.
	settings.Stanza = "waits"
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := Take(ctx, me, settings, &got); err == nil {
		t.Error("a backup that nobody waits for was taken")
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the backup goes on although nobody waits for it")
	}
}
