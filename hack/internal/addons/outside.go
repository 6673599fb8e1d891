// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/capstan-dev/capstan/hack/internal/pki"
)

// outsideNamespace holds what lives outside a cluster in real life.
const outsideNamespace = "outside"

// outside is what its servers have in common: the namespace, a certificate and the authority that signed it, and who may do
// everything on each server.
type outside struct{}

func (outside) Name() string { return outsideNamespace }

func (outside) Apply(ctx context.Context, env *Env) error {
	secrets, err := outsideSecrets(ctx, env)
	if err != nil {
		return err
	}
	authority, err := json.Marshal(string(secrets["tls"]["ca.crt"]))
	if err != nil {
		return fmt.Errorf("cannot encode the authority of the servers outside: %w", err)
	}
	encode := func(secret, key string) string { return base64.StdEncoding.EncodeToString(secrets[secret][key]) }
	return env.Apply(ctx, "outside.yaml", map[string]any{
		"Authority": string(authority),
		"TLS": map[string]string{
			"Authority": encode("tls", "ca.crt"), "Certificate": encode("tls", "tls.crt"), "Key": encode("tls", "tls.key"),
		},
		"S3":     map[string]string{"AccessKeyID": encode("s3", "accessKeyId"), "SecretAccessKey": encode("s3", "secretAccessKey")},
		"MLflow": map[string]string{"Username": encode("mlflow", "username"), "Password": encode("mlflow", "password")},
	})
}

// WaitReady has nothing to wait for: nothing runs yet.
func (outside) WaitReady(context.Context, *Env) error { return nil }

// outsideSecrets returns the content of Secrets by name. Those that are there stay as they are: servers keep accounts with
// their data, and do not look at these again.
func outsideSecrets(ctx context.Context, env *Env) (map[string]map[string][]byte, error) {
	out, err := env.Kubectl(ctx, "get", "secrets", "--namespace="+outsideNamespace, "--output=json")
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
		return nil, fmt.Errorf("cannot read the Secrets in namespace %q: %w", outsideNamespace, err)
	}
	secrets, err := newOutsideSecrets()
	if err != nil {
		return nil, err
	}
	for _, have := range list.Items {
		if _, ours := secrets[have.Metadata.Name]; ours {
			secrets[have.Metadata.Name] = have.Data
		}
	}
	return secrets, nil
}

func newOutsideSecrets() (map[string]map[string][]byte, error) {
	authority, err := pki.NewAuthority("capstan-outside")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, service := range []string{"s3", "mlflow"} {
		name := service + "." + outsideNamespace
		names = append(names, name, name+".svc", name+".svc.cluster.local")
	}
	server, err := authority.Issue(pki.Request{User: outsideNamespace, Names: names})
	if err != nil {
		return nil, err
	}
	return map[string]map[string][]byte{
		"tls":    {"ca.crt": authority.Cert, "tls.crt": server.Cert, "tls.key": server.Key},
		"s3":     {"accessKeyId": []byte("capstan-root"), "secretAccessKey": []byte(rand.Text())},
		"mlflow": {"username": []byte("capstan"), "password": []byte(rand.Text())},
	}, nil
}
