// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// BackupLeaf is a client certificate without a role in the server.
func BackupLeaf(s *names.Names, suffix, commonName string) *compose.Manifest[Spec] {
	return New(s, s.Called(suffix), Spec{
		CommonName:     commonName,
		Duration:       lifeOfLeaf,
		RenewBefore:    renewLeaf,
		IssuerRef:      IssuedBy(s, names.SuffixCA),
		PrivateKey:     privateKey{"ECDSA", 256, "Always"},
		SecretName:     s.Called(suffix),
		SecretTemplate: &secretTemplate{Labels: map[string]string{names.LabelPartOf: "capstan"}},
		Usages:         []string{"digital signature", "client auth"},
	})
}
