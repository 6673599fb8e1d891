// SPDX-License-Identifier: Apache-2.0

// Package cosign signs images in the way of the tool cosign, with a key, and stores the signatures beside the images. It makes the one
// format that Crossplane verifies: a signature in a tag of its own, with an entry of a transparency log.
package cosign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// The environment variables of cosign that this package reads, too.
const (
	KeyVariable      = "COSIGN_KEY"
	PasswordVariable = "COSIGN_PASSWORD"
)

// fromEnvironment starts a reference to a key that an environment variable holds.
const fromEnvironment = "env://"

// A Key signs.
type Key struct {
	private *ecdsa.PrivateKey
	public  []byte
}

// Load returns the private key in a file, or in the environment variable NAME when the reference is env://NAME. The key is an ECDSA key
// of P-256, which cosign makes: encrypted by cosign, or PEM without encryption (PKCS #8 or SEC 1).
func Load(reference, password string) (*Key, error) {
	if reference == "" {
		return nil, fmt.Errorf("cannot sign: no key is given: set %s to a file or to env://NAME (`cosign generate-key-pair` makes a key), "+
			"or set SIGN=none for a release without signatures", KeyVariable)
	}
	var data []byte
	if name, ok := strings.CutPrefix(reference, fromEnvironment); ok {
		if data = []byte(os.Getenv(name)); len(data) == 0 {
			return nil, fmt.Errorf("cannot sign: the environment variable %s is empty: set it to the content of the key file, or set %s to another key",
				name, KeyVariable)
		}
	} else {
		var err error
		if data, err = os.ReadFile(reference); err != nil {
			return nil, fmt.Errorf("cannot sign: cannot read the key: %w: set %s to a file that exists, or to env://NAME", err, KeyVariable)
		}
	}
	private, err := parse(data, password)
	if err != nil {
		return nil, fmt.Errorf("cannot sign with the key %s: %w", reference, err)
	}
	return NewKey(private)
}

// NewKey returns a Key of P-256.
func NewKey(private *ecdsa.PrivateKey) (*Key, error) {
	if private.Curve != elliptic.P256() {
		return nil, fmt.Errorf("cannot sign with a key of %s: use one of P-256, as `cosign generate-key-pair` makes", private.Params().Name)
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return nil, fmt.Errorf("cannot encode the public key: %w", err)
	}
	return &Key{private: private, public: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})}, nil
}

// Public is the public key in PEM.
func (k *Key) Public() []byte { return k.public }

// Sign returns the signature of a message. The same message always gives the same signature (RFC 6979).
func (k *Key) Sign(message []byte) ([]byte, error) {
	digest := sha256.Sum256(message)
	signature, err := k.private.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("cannot sign: %w", err)
	}
	return signature, nil
}

func parse(data []byte, password string) (*ecdsa.PrivateKey, error) {
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			return nil, errors.New("it is no private key in PEM: use the file cosign.key of `cosign generate-key-pair`")
		}
		der := block.Bytes
		switch block.Type {
		case "EC PARAMETERS": // openssl writes them in front of the key
			data = rest
			continue
		case "EC PRIVATE KEY":
			private, err := x509.ParseECPrivateKey(der)
			if err != nil {
				return nil, fmt.Errorf("cannot parse it: %w", err)
			}
			return private, nil
		case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
			var err error
			if der, err = encrypted.Decrypt(der, []byte(password)); err != nil {
				return nil, fmt.Errorf("wrong password: %w: set %s to the one it was made with", err, PasswordVariable)
			}
		case "PRIVATE KEY":
		default:
			return nil, fmt.Errorf("cannot use a %q: use the file cosign.key of `cosign generate-key-pair`", block.Type)
		}
		key, err := x509.ParsePKCS8PrivateKey(der)
		if err != nil {
			return nil, fmt.Errorf("cannot parse it: %w", err)
		}
		private, ok := key.(*ecdsa.PrivateKey)
		if !ok {
			return nil, fmt.Errorf("it is a %T: use an ECDSA key of P-256, as `cosign generate-key-pair` makes", key)
		}
		return private, nil
	}
}
