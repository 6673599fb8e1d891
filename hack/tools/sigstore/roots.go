// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	sigstore "github.com/sigstore/sigstore/pkg/tuf"
	"github.com/theupdateframework/go-tuf"
)

// valid is longer than any test takes, and shorter than anybody could rely on it.
const valid = 48 * time.Hour

// writeRoots writes a folder root as Sigstore's own tools would, which trusts one transparency log. Crossplane asks for an authority and
// a log of certificates, too, before it looks at any key: those that it gets here have signed nothing.
func writeRoots(folder string, log []byte) error {
	authority, certificates, err := unused()
	if err != nil {
		return err
	}
	repository := filepath.Join(folder, "repository-of-roots")
	targets := map[string][]byte{"rekor.pub": log, "ctfe.pub": certificates, "fulcio.crt.pem": authority}
	if err := publish(repository, targets); err != nil {
		return fmt.Errorf("cannot sign trust roots: %w", err)
	}
	root, err := os.ReadFile(filepath.Join(repository, "repository", "root.json"))
	if err != nil {
		return fmt.Errorf("cannot read the root: %w", err)
	}
	if err := os.Setenv(sigstore.TufRootEnv, filepath.Join(folder, "root")); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(folder, "root"), 0o755); err != nil {
		return err
	}
	if err := sigstore.Initialize(context.Background(), "file://"+filepath.Join(repository, "repository"), root); err != nil {
		return fmt.Errorf("cannot write trust roots: %w", err)
	}
	// A user of the folder does not get the repository, and needs it only when the roots have expired.
	if err := os.WriteFile(filepath.Join(folder, "root", "remote.json"), []byte(`{"mirror":"https://roots.invalid"}`), 0o644); err != nil {
		return fmt.Errorf("cannot write trust roots: %w", err)
	}
	return nil
}

// publish makes a repository of The Update Framework.
func publish(folder string, targets map[string][]byte) error {
	expires := time.Now().Add(valid)
	repo, err := tuf.NewRepo(tuf.FileSystemStore(folder, nil))
	if err != nil {
		return err
	}
	if err := repo.Init(false); err != nil {
		return err
	}
	for _, role := range []string{"root", "targets", "snapshot", "timestamp"} {
		if _, err := repo.GenKeyWithExpires(role, expires); err != nil {
			return err
		}
	}
	staged := filepath.Join(folder, "staged", "targets")
	if err := os.MkdirAll(staged, 0o755); err != nil {
		return err
	}
	for name, content := range targets {
		if err := os.WriteFile(filepath.Join(staged, name), content, 0o600); err != nil {
			return err
		}
		if err := repo.AddTargetWithExpires(name, nil, expires); err != nil {
			return err
		}
	}
	return errors.Join(repo.SnapshotWithExpires(expires), repo.TimestampWithExpires(expires), repo.Commit())
}

// unused returns a certificate and a public key in PEM, whose private key is forgotten.
func unused() (authority, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "unused"}, NotAfter: time.Now().Add(valid),
		IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a certificate: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("cannot encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}
