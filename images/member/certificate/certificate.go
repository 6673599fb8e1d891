// SPDX-License-Identifier: Apache-2.0

// Package certificate keeps copies of a member's keys and certificates where its server takes them from, and fresh.
//
// Copies, because a mounted Secret is readable for the group of the pod, and PostgreSQL refuses such a key. All of them change in
// one instant: the folder that programs look into is a link to one that is complete.
package certificate

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Settle is how long a new authority is trusted before a certificate of it is used. The kubelets of the other members bring the
// same Secret within about a minute and a half; one that was slower would refuse this member.
const Settle = 3 * time.Minute

// RefreshEvery is how often mounted files are read again. The kubelet updates them about once a minute.
const RefreshEvery = 10 * time.Second

// Copies of what is mounted.
type Copies struct {
	// Members and Server are the folders that Secrets are mounted to.
	Members, Server string
	// Link is the folder that programs look into.
	Link string
	// Settle is how long a new authority is trusted before a certificate of it is used.
	Settle time.Duration

	// mu: the copies are refreshed both before a member may run and while it runs.
	mu sync.Mutex
	// since is when the authority of the mounted certificate was seen first, by its hash.
	since map[string]time.Time
}

// A bundle is a certificate with its key and authority, PEM.
type bundle struct{ cert, key, authority []byte }

// Refresh the copies, and report whether any changed. Nothing changes when what is mounted cannot be used.
func (c *Copies) Refresh(now time.Time) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	members, err := read(c.Members)
	if err != nil {
		return false, fmt.Errorf("cannot use the certificate of members: %w", err)
	}
	server, err := read(c.Server)
	if err != nil {
		return false, fmt.Errorf("cannot use the certificate for clients: %w", err)
	}
	if members.cert, members.key, err = c.settled(members, now); err != nil {
		return false, err
	}
	trusted, err := c.trusted(members.authority, now)
	if err != nil {
		return false, err
	}
	files := map[string][]byte{
		"members.crt": members.cert, "members.key": members.key, "members-ca.crt": trusted,
		"server.crt": server.cert, "server.key": server.key, "server-ca.crt": server.authority,
	}
	same, err := c.same(files)
	if err != nil || same {
		return false, err
	}
	if err := c.write(files); err != nil {
		return true, fmt.Errorf("cannot copy certificates: %w", err)
	}
	return true, nil
}

// read a mounted Secret, and make sure that it can be used.
func read(dir string) (bundle, error) {
	var b bundle
	for name, to := range map[string]*[]byte{"tls.crt": &b.cert, "tls.key": &b.key, "ca.crt": &b.authority} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return bundle{}, fmt.Errorf("cannot read %s of the Secret: %w", name, err)
		}
		*to = raw
	}
	if _, err := tls.X509KeyPair(b.cert, b.key); err != nil {
		return bundle{}, fmt.Errorf("certificate and key do not fit: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(b.authority) {
		return bundle{}, errors.New("ca.crt has no certificate: the issuer has to provide its authority")
	}
	return b, nil
}

// settled returns the certificate and key to use: the copy in use while the mounted one's authority is new, as long as the copy
// is valid.
func (c *Copies) settled(mounted bundle, now time.Time) (cert, key []byte, err error) {
	hash := sha256.Sum256(mounted.authority)
	id := hex.EncodeToString(hash[:])
	seen, ok := c.since[id]
	if !ok {
		seen = now
		c.since = map[string]time.Time{id: now}
	}
	use, err := c.copyOf("members.crt")
	if use == nil || err != nil {
		return mounted.cert, mounted.key, err
	}
	useKey, err := c.copyOf("members.key")
	if useKey == nil || err != nil {
		return mounted.cert, mounted.key, err
	}
	leaf, err := first(use)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(mounted.authority)
	_, bad := leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	sameAuthority := bad == nil
	if sameAuthority || now.Sub(seen) >= c.Settle || now.After(leaf.NotAfter) {
		return mounted.cert, mounted.key, nil
	}
	return use, useKey, nil
}

// trusted returns the authorities to trust: the mounted one, and those that the copy has and that are valid still, for others may
// use a certificate of theirs.
func (c *Copies) trusted(mounted []byte, now time.Time) ([]byte, error) {
	before, err := c.copyOf("members-ca.crt")
	if err != nil {
		return nil, err
	}
	var out []byte
	var have [][]byte
	for _, raw := range [][]byte{mounted, before} {
		for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
			cert, err := x509.ParseCertificate(block.Bytes)
			known := func(der []byte) bool { return bytes.Equal(der, block.Bytes) }
			if err != nil || now.After(cert.NotAfter) || slices.ContainsFunc(have, known) {
				continue
			}
			have = append(have, block.Bytes)
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
	if out == nil {
		return nil, errors.New("no authority of members is valid any more: renew the Certificate of the authority")
	}
	return out, nil
}

// first certificate of a PEM file.
func first(raw []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, errors.New("cannot understand the copy of the certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot understand the copy of the certificate: %w", err)
	}
	return cert, nil
}

// same reports whether the copies are these files.
func (c *Copies) same(files map[string][]byte) (bool, error) {
	for name, want := range files {
		if got, err := c.copyOf(name); err != nil || !bytes.Equal(got, want) {
			return false, err
		}
	}
	return true, nil
}

// copyOf a mounted file, or nil when there is none.
func (c *Copies) copyOf(name string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(c.Link, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the copy of %s: %w", name, err)
	}
	return raw, nil
}

// write the files into a folder of their own and let the link lead there.
func (c *Copies) write(files map[string][]byte) error {
	dir, err := os.MkdirTemp(filepath.Dir(c.Link), filepath.Base(c.Link)+".")
	if err != nil {
		return err
	}
	for name, raw := range files {
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			return err
		}
	}
	before, _ := os.Readlink(c.Link)
	next := dir + ".link"
	if err := os.Symlink(filepath.Base(dir), next); err != nil {
		return err
	}
	if err := os.Rename(next, c.Link); err != nil || before == "" {
		return err
	}
	return os.RemoveAll(filepath.Join(filepath.Dir(c.Link), before))
}
