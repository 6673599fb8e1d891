// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// keep returns the content of Secrets by name: as it is in the cluster, and as given where the cluster has none.
func keep(
	ctx context.Context, env *Env, namespace string, fresh map[string]map[string][]byte,
) (map[string]map[string][]byte, error) {
	out, err := env.Kubectl(ctx, "get", "secrets", "--namespace="+namespace, "--output=json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Data map[string][]byte `json:"data"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("cannot read the Secrets in namespace %q: %w", namespace, err)
	}
	for _, have := range list.Items {
		if _, ours := fresh[have.Metadata.Name]; ours {
			fresh[have.Metadata.Name] = have.Data
		}
	}
	return fresh, nil
}

// encodeTLS returns a certificate, its key and its authority as a manifest of a Secret has them.
func encodeTLS(secret map[string][]byte) map[string]string {
	return map[string]string{
		"Authority":   base64.StdEncoding.EncodeToString(secret["ca.crt"]),
		"Certificate": base64.StdEncoding.EncodeToString(secret["tls.crt"]),
		"Key":         base64.StdEncoding.EncodeToString(secret["tls.key"]),
	}
}
