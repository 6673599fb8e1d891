// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/password"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

const (
	// alphabet of passwords: letters and digits, which need no quoting in a
	// shell, an URL, SQL or a configuration file, without those that are easily
	// taken for one another (0 O o, 1 l I). 56 characters are 5.8 bits each: 92
	// bits at the shortest length that the API allows (16), 185 by default (32).
	alphabet = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"

	// defaultLength applies to Credentials that no schema has defaulted.
	defaultLength = 32
)

// generate a password from a cryptographic source.
func generate(p v1alpha1.CredentialParameters) (string, error) {
	length := defaultLength
	if p.Length != nil {
		length = int(*p.Length)
	}

	pw, err := password.Settings{CharacterSet: alphabet, Length: length}.Generate()
	if err != nil {
		return "", fmt.Errorf("cannot read random bytes: %w", err)
	}

	return pw, nil
}
