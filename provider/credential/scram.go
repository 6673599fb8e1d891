// SPDX-License-Identifier: Apache-2.0

package credential

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
)

// A verifier of SCRAM-SHA-256 (RFC 5802, RFC 7677) is what a server keeps instead
// of a password: it can check a client's proof, and cannot log in with it.
type verifier struct {
	iterations int
	salt       []byte
	storedKey  []byte
	serverKey  []byte
}

// postgres writes verifiers into pg_authid in this form, and takes them wherever
// it takes a password.
var postgres = regexp.MustCompile(
	`^SCRAM-SHA-256\$([0-9]{1,9}):([A-Za-z0-9+/]+={0,2})\$([A-Za-z0-9+/]+=?):([A-Za-z0-9+/]+=?)$`)

var errNoSCRAM = errors.New("not a SCRAM-SHA-256 verifier")

// newSCRAM returns a verifier of value with a salt of its own, in PostgreSQL's form.
func newSCRAM(value []byte, iterations int) ([]byte, error) {
	// As long as PostgreSQL's.
	salt := make([]byte, 16)
	_, _ = rand.Read(salt)

	v, err := verify(value, salt, iterations)
	if err != nil {
		return nil, err
	}

	return []byte(v.String()), nil
}

// verify returns the verifier of value with this salt.
func verify(value, salt []byte, iterations int) (verifier, error) {
	salted, err := pbkdf2.Key(sha256.New, string(value), salt, iterations, sha256.Size)
	if err != nil {
		return verifier{}, fmt.Errorf("cannot salt a value: %w", err)
	}

	stored := sha256.Sum256(mac(salted, "Client Key"))

	return verifier{iterations: iterations, salt: salt, storedKey: stored[:], serverKey: mac(salted, "Server Key")}, nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text))

	return h.Sum(nil)
}

// parseSCRAM reads a verifier in PostgreSQL's form.
func parseSCRAM(text []byte) (verifier, error) {
	m := postgres.FindSubmatch(text)
	if m == nil {
		return verifier{}, errNoSCRAM
	}

	v := verifier{}

	var err error
	if v.iterations, err = strconv.Atoi(string(m[1])); err != nil {
		return verifier{}, errNoSCRAM
	}

	for i, into := range []*[]byte{&v.salt, &v.storedKey, &v.serverKey} {
		if *into, err = base64.StdEncoding.DecodeString(string(m[2+i])); err != nil {
			return verifier{}, errNoSCRAM
		}
	}

	if len(v.storedKey) != sha256.Size || len(v.serverKey) != sha256.Size {
		return verifier{}, errNoSCRAM
	}

	return v, nil
}

// fits tells whether v was made from value.
func (v verifier) fits(value []byte) bool {
	want, err := verify(value, v.salt, v.iterations)

	return err == nil && hmac.Equal(want.storedKey, v.storedKey) && hmac.Equal(want.serverKey, v.serverKey)
}

// String is v in PostgreSQL's form.
func (v verifier) String() string {
	b := base64.StdEncoding.EncodeToString

	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", v.iterations, b(v.salt), b(v.storedKey), b(v.serverKey))
}
