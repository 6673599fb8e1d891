// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/x509"
	"encoding/pem"
)

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
