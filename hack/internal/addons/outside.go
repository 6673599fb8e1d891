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

func (outside) Tools() []string { return nil }

func (outside) Apply(ctx context.Context, env *Env) error {
	fresh, err := newOutsideSecrets()
	if err != nil {
		return err
	}
	// Servers keep accounts with their data, and do not look at these again.
	secrets, err := keep(ctx, env, outsideNamespace, fresh)
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
		"TLS":       encodeTLS(secrets["tls"]),
		"S3":        map[string]string{"AccessKeyID": encode("s3", "accessKeyId"), "SecretAccessKey": encode("s3", "secretAccessKey")},
		"MLflow":    map[string]string{"Username": encode("mlflow", "username"), "Password": encode("mlflow", "password")},
	})
}

// WaitReady has nothing to wait for: nothing runs yet.
func (outside) WaitReady(context.Context, *Env) error { return nil }

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
