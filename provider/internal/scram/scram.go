// SPDX-License-Identifier: Apache-2.0

// Package scram makes verifiers of SCRAM-SHA-256 (RFC 5802, RFC 7677): what a
// server keeps instead of a password. It can check a client's proof with it, and
// nobody can log in with it.
package scram

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

const (
	// Iterations of new verifiers, as many as PostgreSQL makes.
	Iterations = 4096

	// saltBytes are as many as PostgreSQL's.
	saltBytes = 16
)

// Verifier of a password with a salt of its own, in the form in which PostgreSQL
// takes it in place of a password.
func Verifier(password string) (string, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt)

	return verifier(password, salt, Iterations)
}

func verifier(password string, salt []byte, iterations int) (string, error) {
	// PostgreSQL and its clients normalise other characters, each a little
	// differently.
	if err := Check(password); err != nil {
		return "", err
	}

	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("cannot salt a password: %w", err)
	}

	stored := sha256.Sum256(mac(salted, "Client Key"))
	b := base64.StdEncoding.EncodeToString

	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, b(salt), b(stored[:]), b(mac(salted, "Server Key"))), nil
}

// maxPassword is how long a password may be. Servers and clients have limits of
// their own above it.
const maxPassword = 256

// Check that a password means the same to every client and server.
func Check(password string) error {
	if password == "" {
		return errors.New("it is empty")
	}

	if len(password) > maxPassword {
		return fmt.Errorf("it has more than %d characters", maxPassword)
	}

	for _, b := range []byte(password) {
		if b < ' ' || b > '~' {
			return errors.New("it has a character that is not printable ASCII")
		}
	}

	return nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text))

	return h.Sum(nil)
}
