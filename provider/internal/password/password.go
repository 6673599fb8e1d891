// SPDX-License-Identifier: Apache-2.0

// Package password says which passwords mean the same to every client and server.
package password

import (
	"bytes"
	"errors"
	"fmt"
)

// maxLength is how long a password may be, in bytes: MySQL takes no longer one. Other servers and clients have limits above it.
const maxLength = 256

// ErrNotPrintable says that a password has characters that clients and servers understand differently.
var ErrNotPrintable = errors.New("it has a character that is not printable ASCII")

// Check that a password means the same to every client and server.
func Check(password []byte) error {
	if len(password) == 0 {
		return errors.New("it is empty")
	}
	if len(password) > maxLength {
		return fmt.Errorf("it has more than %d characters", maxLength)
	}
	if !Printable(password) {
		return ErrNotPrintable
	}
	return nil
}

// Printable reports whether a password is of printable ASCII, which SASLprep leaves as it is. Clients and servers disagree about
// much of the rest: there is no verifier of it.
func Printable(password []byte) bool {
	return !bytes.ContainsFunc(password, func(r rune) bool { return r < ' ' || r > '~' })
}
