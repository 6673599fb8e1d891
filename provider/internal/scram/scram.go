// SPDX-License-Identifier: Apache-2.0

// Package scram makes verifiers of SCRAM-SHA-256 (RFC 5802, RFC 7677): what a server keeps instead of a password. A verifier
// checks a client's proof; it cannot be used to log in. It is made by hand because the standard library has the cryptography
// (crypto/pbkdf2), and libraries of SCRAM add SASLprep and a conversation, which nothing here needs, but not PostgreSQL's form.
package scram

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/capstan-dev/capstan/provider/internal/password"
)

const (
	// Iterations of new verifiers, as many as PostgreSQL makes.
	Iterations = 4096

	// saltBytes are as many as PostgreSQL's.
	saltBytes = 16
)

// A Verifier of a password.
type Verifier struct {
	// Iterations that it takes to salt the password.
	Iterations int

	salt      []byte
	storedKey []byte
	serverKey []byte
}

// postgres writes verifiers into pg_authid in this form, and takes them wherever it takes a password.
var postgres = regexp.MustCompile(
	`^SCRAM-SHA-256\$([0-9]{1,9}):([A-Za-z0-9+/]+={0,2})\$([A-Za-z0-9+/]+=?):([A-Za-z0-9+/]+=?)$`)

var errNoVerifier = errors.New("not a SCRAM-SHA-256 verifier")

// New verifier of a password, with a salt of its own.
func New(secret []byte, iterations int) (Verifier, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt)
	return salted(secret, salt, iterations)
}

// salted verifier of a password.
func salted(secret, salt []byte, iterations int) (Verifier, error) {
	if !password.Printable(secret) {
		return Verifier{}, password.ErrNotPrintable
	}
	key, err := pbkdf2.Key(sha256.New, string(secret), salt, iterations, sha256.Size)
	if err != nil {
		return Verifier{}, fmt.Errorf("cannot salt a password: %w", err)
	}
	stored := sha256.Sum256(mac(key, "Client Key"))
	return Verifier{Iterations: iterations, salt: salt, storedKey: stored[:], serverKey: mac(key, "Server Key")}, nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text))
	return h.Sum(nil)
}

// Parse reads a verifier in PostgreSQL's form.
func Parse(text []byte) (Verifier, error) {
	m := postgres.FindSubmatch(text)
	if m == nil {
		return Verifier{}, errNoVerifier
	}
	v := Verifier{}
	var err error
	if v.Iterations, err = strconv.Atoi(string(m[1])); err != nil {
		return Verifier{}, errNoVerifier
	}
	for i, into := range []*[]byte{&v.salt, &v.storedKey, &v.serverKey} {
		if *into, err = base64.StdEncoding.DecodeString(string(m[2+i])); err != nil {
			return Verifier{}, errNoVerifier
		}
	}
	if len(v.storedKey) != sha256.Size || len(v.serverKey) != sha256.Size {
		return Verifier{}, errNoVerifier
	}
	return v, nil
}

// Fits reports whether v was made from a password.
func (v Verifier) Fits(secret []byte) bool {
	want, err := salted(secret, v.salt, v.Iterations)
	return err == nil && hmac.Equal(want.storedKey, v.storedKey) && hmac.Equal(want.serverKey, v.serverKey)
}

// String is v in the form in which PostgreSQL takes it in place of a password.
func (v Verifier) String() string {
	b := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", v.Iterations, b(v.salt), b(v.storedKey), b(v.serverKey))
}
