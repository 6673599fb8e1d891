// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"encoding/base64"
	"fmt"
)

// Kubeconfig returns a file that lets a client with this certificate talk to the server, which the authority vouches
// for. It refers to no other file.
func Kubeconfig(server string, authority []byte, client Pair) []byte {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: capstan
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: capstan
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: capstan
  context: {cluster: capstan, user: capstan}
current-context: capstan
`, server, encode(authority), encode(client.Cert), encode(client.Key))
}
